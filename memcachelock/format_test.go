package memcachelock

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/goldentest"
)

var update = flag.Bool("update", false, "write the items of testdata anew")

// item returns the value of an item of the shared server.
func item(t testing.TB, name string) string {
	t.Helper()
	conn, err := net.Dial("tcp", shared.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "get %s\r\n", name)
	lines := bufio.NewScanner(conn)
	lines.Scan() // VALUE
	lines.Scan()
	if lines.Err() != nil || lines.Text() == "" {
		t.Fatalf("there is no item %s: %q, %v", name, lines.Text(), lines.Err())
	}
	return lines.Text()
}

func setItem(name, value string) {
	shared.Must(fmt.Sprintf("set %s 0 3600 %d\r\n%s", name, len(value), value), "STORED")
}

// newerItem makes an item one of the next format.
func newerItem(t testing.TB, name string) (record func() string) {
	setItem(name, `{"format":2,"key":["another","type"]}`)
	return func() string { return item(t, name) }
}

// A change of the format needs another number, and a release that reads it before one that
// writes it.
func TestGolden(t *testing.T) {
	t.Parallel()
	first, second := rand.Text(), rand.Text() // prefixes
	goldentest.Write(t, newStore(t, &Options{Prefix: first}, shared))
	s := newStore(t, &Options{Prefix: second}, shared)
	for _, key := range []string{"holder", "queue"} {
		text := regexp.MustCompile(`"(token|phase)":\d+`).ReplaceAllString(item(t, first+"="+key), `"$1":{token}`)
		text = regexp.MustCompile(`"until":\d{13}\b`).ReplaceAllString(goldentest.Shape(text), `"until":{until}`) + "\n"
		path := "testdata/" + key + ".json"
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if text != string(want) {
			t.Errorf("this release writes\n%s\nand testdata has\n%s", text, want)
		}
		until := fmt.Sprint(time.Now().Add(time.Hour).UnixMilli())
		setItem(second+"="+key, strings.TrimSpace(goldentest.Fill(strings.NewReplacer("{token}", "1000", "{until}", until).Replace(string(want)), time.Now().UnixMicro())))
	}
	holders, err := s.Holders(t.Context(), "holder")
	if err != nil || len(holders) != 1 {
		t.Fatalf("told %+v, %v; want one holder", holders, err)
	}
	goldentest.Holder(t, s, holders[0].Fence, holders[0].Fence)
	goldentest.Readers(t, s, 1000)
}

// The holder knows its item by number and not by value.
func TestNewerItemOfAHolder(t *testing.T) {
	t.Parallel()
	prefix := rand.Text()
	s := newStore(t, &Options{Prefix: prefix}, shared)
	c := exclusive("newer", "holder")
	if g, err := s.Acquire(t.Context(), c); !g.OK || err != nil {
		t.Fatalf("%+v, %v", g, err)
	}
	record := newerItem(t, prefix+"=newer")
	before := record()
	for name, call := range map[string]func(context.Context, *Store, driver.Ask) error{"Renew": renew, "Release": release} {
		if err := call(t.Context(), s, c); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v, want an ErrInvalid", name, err)
		}
	}
	if after := record(); after != before {
		t.Errorf("the item has changed from %s to %s", before, after)
	}
}
