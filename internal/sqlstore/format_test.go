package sqlstore

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/goldentest"
)

var update = flag.Bool("update", false, "write the rows of goldentest anew")

// A change of the format needs another number, and a release that reads it before one that
// writes it.
func TestFormatIsThatOfTestdata(t *testing.T) {
	now := at(0)
	fence := uint64(now.Wall)
	held := func(id string, weight int64, span int) book.Entry {
		return book.Entry{
			ID: id, Weight: weight, Limit: driver.MaxWeight, TTL: time.Hour, Until: now.Now + time.Hour,
			Asked: now.Now, Since: now.Wall, Span: span, Fence: fence,
		}
	}
	holder, left, waiter := held("holder", driver.MaxWeight, 3), held("left", 1, 1), held("waiter", driver.MaxWeight, 1)
	holder.Owner, holder.Note, holder.Session = "me", "a note", "a channel"
	left.Left = true
	waiter.Fence, waiter.Session = 0, "a channel"
	for key, b := range map[string]book.Book{
		"holder": {Floor: fence + 2, Held: []book.Entry{holder}},
		"queue": {
			Floor: fence, Phase: fence, Held: []book.Entry{held("reader", 1, 1), left}, Queue: []book.Entry{waiter},
			Tombs: []book.Tomb{{ID: "late", Until: now.Now + time.Hour}, {ID: "broken", Until: now.Now + time.Hour, Broken: true}},
		},
	} {
		var r row
		if err := r.fill(&b, now.Now); err != nil {
			t.Fatal(err)
		}
		statement := func(table string) string {
			return fmt.Sprintf("INSERT INTO %s (name, version, format, fence, sole, since, until, claims)\nVALUES ('%s', %d, %d, %d, '%s', %d, %d, '%s')",
				table, key, now.Wall, format, r.fence, r.sole, r.since, r.until, r.claims)
		}
		if *update {
			text := regexp.MustCompile(`18000\d{11}`).ReplaceAllStringFunc(statement("{table}"), func(number string) string {
				if n, _ := strconv.ParseInt(number, 10, 64); n > now.Wall {
					return fmt.Sprintf("{now+%d}", n-now.Wall)
				}
				return "{now}"
			})
			if err := os.WriteFile("../goldentest/testdata/"+key+".sql", []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if got, want := statement("t"), goldentest.Row(key, "t", now.Wall); got != want {
			t.Errorf("this release writes the row otherwise:\n%s\nwant\n%s", got, want)
		}
	}
}
