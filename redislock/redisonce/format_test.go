package redisonce_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/redislock/redisonce"
)

// golden is a record as this release writes it. A change needs another format, and a release
// that reads the format before one that writes it.
var golden = []string{"format", "1", "print", "print", "result", "result", "state", "2", "token", "7"}

func TestGolden(t *testing.T) {
	server := empty()
	records := redisonce.New(connect(t, server.Addr()), nil)
	fields := func() string {
		all := server.Must("HGETALL", "holdfast:once:key").([]any)
		var pairs []string
		for i := 0; i < len(all); i += 2 {
			pairs = append(pairs, fmt.Sprint(all[i], "=", all[i+1]))
		}
		slices.Sort(pairs)
		return strings.Join(pairs, " ")
	}
	if _, err := records.Begin(t.Context(), "key", 7, "print", time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := records.Finish(t.Context(), "key", 7, []byte("result"), time.Hour); err != nil {
		t.Fatal(err)
	}
	wrote := fields()
	server.Must("DEL", "holdfast:once:key")
	server.Must(append([]string{"HSET", "holdfast:once:key"}, golden...)...)
	if want := fields(); wrote != want {
		t.Errorf("this release writes %s, and the record is %s", wrote, want)
	}
	if r, err := records.Load(t.Context(), "key"); err != nil || r.State != once.Done || r.Token != 7 || r.Fingerprint != "print" || string(r.Result) != "result" {
		t.Errorf("the record is %+v, %v", r, err)
	}

	for format, state := range map[string]string{"2": "0", "3": "1", "4": "done", "01": "1", "2a": "1", "9223372036854775808": "1"} {
		server.Must("HSET", "holdfast:once:key", "format", format, "state", state)
		before := fields()
		_, loaded := records.Load(t.Context(), "key")
		_, begun := records.Begin(t.Context(), "key", 9, "print", time.Hour)
		for name, err := range map[string]error{
			"Load": loaded, "Begin": begun,
			"Finish": records.Finish(t.Context(), "key", 7, []byte("other"), time.Hour),
			"Forget": records.Forget(t.Context(), "key", 9),
		} {
			if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "format ") || !strings.Contains(err.Error(), format) {
				t.Errorf("%s: %v, want an ErrInvalid that names the format %s", name, err, format)
			}
		}
		if after := fields(); after != before {
			t.Errorf("the record has changed from %s to %s", before, after)
		}
	}
}
