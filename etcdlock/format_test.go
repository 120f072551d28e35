package etcdlock_test

import (
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/internal/goldentest"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

var update = flag.Bool("update", false, "write the records of testdata anew")

// values returns all keys with a prefix, in the order of their creation.
func values(t testing.TB, c *clientv3.Client, prefix string) (names, values []string) {
	t.Helper()
	r, err := c.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range r.Kvs {
		names, values = append(names, string(kv.Key)), append(values, string(kv.Value))
	}
	return names, values
}

// newer is Harness.Newer of the shared server.
func newer(t testing.TB, c *clientv3.Client, prefix, key string) (record func() string) {
	t.Helper()
	folder := prefix + "claims/" + strings.ReplaceAll(key, "/", "%2F") + "/"
	names, _ := values(t, c, folder)
	for _, name := range names {
		if _, err := c.Put(t.Context(), name, `{"format":2,"id":["another","type"]}`, clientv3.WithIgnoreLease()); err != nil {
			t.Fatal(err)
		}
	}
	return func() string {
		all, values := values(t, c, folder)
		var ours []string
		for i, name := range all {
			if slices.Contains(names, name) {
				ours = append(ours, name+" "+values[i])
			}
		}
		return strings.Join(ours, "\n")
	}
}

// A change of the format needs another number, and a release that reads it before one that
// writes it.
func TestGolden(t *testing.T) {
	t.Parallel()
	c := admin(t, shared.Direct())
	const testdata = "testdata/records.jsonl"
	t.Run("written", func(t *testing.T) {
		var first string // a prefix
		var names, texts []string
		unproved.InTime(t, waiting("queue", "waiter").Alive(), func() { // The waiter keeps its place for that long.
			first = rand.Text() + "/"
			goldentest.Write(t, openStore(t, shared.URL()+"?prefix="+first))
			names, texts = values(t, c, first)
		})
		var wrote strings.Builder
		for i, name := range names {
			text := regexp.MustCompile(`"phase":\d+`).ReplaceAllString(texts[i], `"phase":{phase}`)
			line, _ := json.Marshal([]string{strings.TrimPrefix(name, first), text}) // cannot fail
			wrote.Write(append(line, '\n'))
		}
		got := goldentest.Shape(regexp.MustCompile(`[A-Z2-7]{26}`).ReplaceAllString(wrote.String(), strings.Repeat("C", 26))) // the client
		if *update {
			if err := os.WriteFile(testdata, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(testdata)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("this release writes\n%s\nand testdata has\n%s", got, want)
		}
	})

	want, err := os.ReadFile(testdata)
	if err != nil {
		t.Fatal(err)
	}
	second := rand.Text() + "/"
	lease, err := c.Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) (revision int64) {
		t.Helper()
		r, err := c.Put(t.Context(), second+name, text, clientv3.WithLease(lease.ID))
		if err != nil {
			t.Fatal(err)
		}
		return r.Header.Revision
	}
	phase := put("begins the phase", "") // as the claim of the reader that was broken
	var holder int64
	for line := range strings.Lines(goldentest.Fill(string(want), time.Now().UnixMicro())) {
		var entry [2]string
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		revision := put(entry[0], strings.Replace(entry[1], "{phase}", fmt.Sprint(phase), 1))
		if strings.HasPrefix(entry[0], "claims/holder/") {
			holder = revision
		}
	}
	s := openStore(t, shared.URL()+"?prefix="+second)
	goldentest.Holder(t, s, uint64(holder)<<8, uint64(holder)<<8+2)
	goldentest.Queue(t, s, uint64(phase)<<8)
}
