package redislock_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/goldentest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

var update = flag.Bool("update", false, "write the records of testdata anew; then check the times in them")

// next turns the fields of KEYS[1], and the places of KEYS[2], into those of the next format.
const next = `
for _, key in ipairs(KEYS) do
  local fields = redis.call('HGETALL', key)
  for i = 1, #fields, 2 do
    if key == KEYS[1] then
      redis.call('HSET', key, '2' .. fields[i]:sub(2), 'a later value')
      redis.call('HDEL', key, fields[i])
    else
      redis.call('HSET', key, fields[i], '2:a later value')
    end
  end
end`

// newer is Harness.Newer of a server.
func newer(t testing.TB, r *servers.Redis, key string) (record func() string) {
	t.Helper()
	held := r.Must("KEYS", "*:held:"+key).([]any)[0].(string)
	line, places := strings.Replace(held, ":held:", ":line:", 1), strings.Replace(held, ":held:", ":places:", 1)
	r.Must("EVAL", next, "2", held, places)
	return func() string {
		return fmt.Sprint(r.Must("HGETALL", held), r.Must("LRANGE", line, "0", "-1"), r.Must("HGETALL", places))
	}
}

// commands returns the commands that make all that a server has, in JSON, a line each.
func commands(r *servers.Redis) string {
	var lines []string
	add := func(words ...any) {
		line, _ := json.Marshal(words) // cannot fail
		lines = append(lines, string(line))
	}
	for _, key := range r.Must("KEYS", "*").([]any) {
		left := (r.Must("PTTL", key.(string)).(int64) + 9_999) / 10_000 * 10_000
		switch r.Must("TYPE", key.(string)) {
		case "string":
			add("SET", key, r.Must("GET", key.(string)))
		case "list":
			add(append([]any{"RPUSH", key}, r.Must("LRANGE", key.(string), "0", "-1").([]any)...)...)
		case "hash":
			fields := r.Must("HGETALL", key.(string)).([]any)
			for i := 0; i < len(fields); i += 2 {
				add("HSET", key, fields[i], fields[i+1])
			}
		}
		if left > 0 {
			add("PEXPIRE", key, fmt.Sprint(left))
		}
	}
	slices.SortFunc(lines, func(a, b string) int { // the expiry last: SET removes it
		expires := func(line string) int { return strings.Count(line, `"PEXPIRE"`) }
		return cmp.Or(expires(a)-expires(b), strings.Compare(a, b))
	})
	return strings.Join(lines, "\n") + "\n"
}

const testdata = "testdata/records.jsonl"

// put carries out the commands of testdata.
func put(t *testing.T, r *servers.Redis, now int64) {
	t.Helper()
	r.Must("FLUSHALL")
	for line := range strings.Lines(goldentest.Read(t, "records.jsonl", now)) {
		var words []string
		if err := json.Unmarshal([]byte(line), &words); err != nil {
			t.Fatal(err)
		}
		r.Must(words...)
	}
}

// A change of the format needs another number, and a release that reads it before one that
// writes it.
func TestGolden(t *testing.T) {
	t.Parallel()
	r, s := openProven(t)
	setFloor(r, "1") // a server without a floor gives no spans
	goldentest.Write(t, s)
	wrote := regexp.MustCompile(`[A-Z2-7]{26}`).ReplaceAllString(commands(r), strings.Repeat("C", 26)) // the client
	if *update {
		now := time.Now().UnixMicro()
		text := regexp.MustCompile(`\b\d{16}\b`).ReplaceAllStringFunc(wrote, func(number string) string {
			var n int64
			fmt.Sscan(number, &n)
			if n > now {
				return "{now+3600000000}"
			}
			return "{now}"
		})
		if err := os.WriteFile(testdata, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(testdata)
	if err != nil {
		t.Fatal(err)
	}
	lasting := regexp.MustCompile(`("PEXPIRE",".*",)"\d+"`) // of a busy machine
	shape := func(text string) string { return lasting.ReplaceAllString(goldentest.Shape(text), "$1") }
	if got, want := shape(wrote), shape(string(want)); got != want {
		t.Errorf("this release writes\n%s\nand testdata has\n%s", got, want)
	}

	now := time.Now().UnixMicro()
	put(t, r, now)
	goldentest.Holder(t, s, uint64(now), uint64(now)+2)
	goldentest.Queue(t, s, uint64(now))
}

// The holder of a newer release may have gone, and its waiters not.
func TestNewerQueue(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	s := opening(r.URL()).Open(t)
	t.Cleanup(func() { s.Close() })
	put(t, r, time.Now().UnixMicro())
	record := newer(t, r, "queue")
	r.Must("DEL", r.Must("KEYS", "*:held:queue").([]any)[0].(string))
	before := record()
	c := driver.Claim{Key: "queue", ID: "next", Weight: 1, Limit: 1, TTL: time.Hour}
	for _, wait := range []bool{false, true} {
		if g, err := s.Acquire(t.Context(), driver.Ask{Claim: c, Wait: wait, Span: 1}); g.OK || !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("Acquire beside the queue of a newer release: %+v, %v; want an ErrInvalid", g, err)
		}
	}
	c.ID = "waiter"
	if err := s.Release(context.Background(), []driver.Release{{Claim: c}})[0]; !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("Release of a place of a newer release: %v, want an ErrInvalid", err)
	}
	if after := record(); after != before {
		t.Errorf("the record has changed from %s to %s", before, after)
	}
}
