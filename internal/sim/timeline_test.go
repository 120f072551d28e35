package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A timeline shows who waits and who holds, and the page shows each lock.
func TestTimeline(t *testing.T) {
	w := Run(t, 1, Memory(), func(w *World) {
		for _, name := range []string{"a", "b"} {
			w.Process(name, &holdfast.Options{TTL: time.Second}).Go("1", func(r *Routine) {
				if name == "b" {
					r.Sleep(time.Millisecond)
				}
				held, err := r.Lock(w.Context(), Want{Key: "k"})
				if err != nil {
					t.Error(err)
					return
				}
				r.Sleep(time.Second)
				held.Look()
				_ = held.Unlock()
			})
		}
		w.Wait()
	})
	var text, page strings.Builder
	if err := w.WriteTimeline(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"seed 1\ncolumn 1 is goroutine a/1\ncolumn 2 is goroutine b/1\na waits for k, A holds k\n",
		"  A·  a/1      end    lock k", "  Aa  b/1      begin  lock k", "  ·A  b/1      end    lock k",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	if err := w.WritePage(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"workers":["process a","process b"]`, `"k":0,"w":0,"n":"a/1","m":"exclusive"`, `"n":"b/1"`} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%q is not in the page", want)
		}
	}
}
