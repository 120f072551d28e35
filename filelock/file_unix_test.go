//go:build linux || darwin || freebsd

package filelock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/flock"
	"github.com/holdfast-go/holdfast/internal/safefile"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// after makes it seem that so much time has passed since a Store has looked
// whether its files are in their places.
func (u *user) after() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, f := range u.files {
		f.checked -= recheck
	}
	if live := u.session.Load(); live != nil {
		live.checked.Add(-int64(recheck))
	}
}

func TestLockFileRemoved(t *testing.T) {
	a := in(t, t.TempDir(), nil)
	b := in(t, a.dir, nil)
	held, next := exclusive("key"), exclusive("key")
	fence := a.granted(held).Fence
	b.refused(next)
	a.must(os.Remove(a.path("key")))
	if err := a.renew(held); !errors.Is(err, driver.ErrLost) || !strings.Contains(err.Error(), "removed") {
		t.Errorf("Renew says %v, want that it is lost as its file was removed", err)
	}
	if g := b.granted(next); g.Fence <= fence {
		t.Errorf("token %d after %d", g.Fence, fence)
	}
	a.refused(exclusive("key")) // It meets b's claim in the new file.
	if err := a.renew(held); !errors.Is(err, driver.ErrLost) {
		t.Errorf("Renew says %v, want ErrLost", err)
	}
	b.release(next)
	a.granted(exclusive("key"))
}

func TestLockFileReplaced(t *testing.T) {
	a := in(t, t.TempDir(), nil)
	b := in(t, a.dir, nil)
	held := exclusive("key")
	a.granted(held)
	a.granted(exclusive("other"))
	a.must(os.Rename(a.path("key"), a.path("key")+"-aside"))
	a.after()
	b.granted(exclusive("key"))
	if err := a.renew(held); !errors.Is(err, driver.ErrLost) {
		t.Errorf("Renew says %v, want ErrLost", err)
	}
	a.refused(exclusive("key"))

	// The record of another key says so.
	a.must(os.Rename(a.path("other"), a.path("key")))
	if err := b.fails(exclusive("key")); !errors.Is(err, errOtherKey) || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("the record of another key is refused with %v", err)
	}
	if _, err := b.Holders(t.Context(), "key"); !errors.Is(err, errOtherKey) {
		t.Errorf("Holders says %v", err)
	}
	for key, err := range b.Keys(t.Context(), "") {
		if key != "" || !errors.Is(err, errOtherKey) {
			t.Errorf("Keys yields %q, %v", key, err)
		}
	}
}

func TestDirectoryRemoved(t *testing.T) {
	u := in(t, filepath.Join(t.TempDir(), "locks"), nil)
	held := exclusive("key")
	u.granted(held)
	u.must(os.RemoveAll(u.dir))
	if err := u.renew(held); !errors.Is(err, driver.ErrLost) {
		t.Errorf("Renew says %v, want ErrLost", err)
	}
	next := exclusive("key")
	u.granted(next)
	in(t, u.dir, nil).refused(exclusive("key")) // It has a session again, too.
	u.release(next)
}

// A claim whose session somebody has removed lives on, if nobody has noticed.
func TestSessionRemoved(t *testing.T) {
	a := in(t, t.TempDir(), nil)
	b := in(t, a.dir, nil)
	kept, lost := exclusive("kept"), exclusive("lost")
	a.granted(kept)
	a.granted(lost)
	a.must(os.Remove(a.sessionPath(a.session.Load().id)))
	b.granted(exclusive("lost"))
	a.after()
	a.must(a.renew(kept))
	b.refused(exclusive("kept"))
	if err := a.renew(lost); !errors.Is(err, driver.ErrLost) {
		t.Errorf("Renew says %v, want ErrLost", err)
	}
	a.must(a.Close())
	b.granted(exclusive("kept"))
}

func TestGarbageIsRefused(t *testing.T) {
	u := in(t, t.TempDir(), nil)
	u.granted(exclusive("good"))
	u.must(os.WriteFile(u.path("bad"), []byte(strings.Repeat("garbage", 1000)), 0o600))
	for _, err := range []error{u.fails(exclusive("bad")), u.renew(exclusive("bad")), u.Break(t.Context(), "bad", "x")} {
		if !errors.Is(err, errGarbage) || !strings.Contains(err.Error(), u.path("bad")) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want a line that names the file and says: %v", err, errGarbage)
		}
	}
	var keys []string
	var last error
	for key, err := range u.Keys(t.Context(), "") {
		keys, last = append(keys, key), err
	}
	if len(keys) != 2 || keys[0] != "good" || !errors.Is(last, errGarbage) {
		t.Errorf("Keys yields %q and ends with %v, want the good key and then the error", keys, last)
	}
}

// Another process is in the critical section and does not come out.
func TestSectionThatIsBusy(t *testing.T) {
	u := in(t, t.TempDir(), nil)
	c := exclusive("key")
	u.granted(c)
	h, err := safefile.Open(u.path("key"), true)
	u.must(err)
	defer h.Close()
	if ok, err := flock.Try(uintptr(h), true); !ok {
		t.Fatal(err)
	}
	// A context that ends before a call has looked at the file names no file.
	servers.Until(t, "two calls to end with the name of the file", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		errs := make(chan error, 2)
		for range 2 { // One waits for the file, the other for its turn.
			go func() { errs <- u.Renew(ctx, asks.Renewals(c))[0] }()
		}
		named := 0
		for range 2 {
			err := <-errs
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v, want the error of the context", err)
			}
			if strings.Contains(err.Error(), u.path("key")) {
				named++
			}
		}
		return named == 2
	})
	if list, err := u.Holders(t.Context(), "key"); err != nil || len(list) != 1 {
		t.Errorf("Holders waits for nobody, but says %v, %v", list, err)
	}
	flock.Unlock(uintptr(h))
	u.must(u.renew(c))
}

// A process that renews many claims at once must not lose every claim to one busy file.
func TestBusySectionDelaysNoOtherKey(t *testing.T) {
	u := in(t, t.TempDir(), nil)
	claims := []driver.Ask{exclusive("busy"), exclusive("one"), exclusive("two")}
	for _, c := range claims {
		u.granted(c)
	}
	h, err := safefile.Open(u.path("busy"), true)
	u.must(err)
	defer h.Close()
	if ok, err := flock.Try(uintptr(h), true); !ok {
		t.Fatal(err)
	}
	renewals := asks.Renewals(claims...)
	for i := range renewals {
		renewals[i].TTL = time.Hour
	}
	var renewing sync.WaitGroup
	defer renewing.Wait()
	defer flock.Unlock(uintptr(h))
	renewing.Go(func() {
		if errs := u.Renew(t.Context(), renewals); errors.Join(errs...) != nil {
			t.Errorf("Renew says %v", errs)
		}
	})
	servers.Until(t, "a renewal of the other claims", func() bool {
		return u.holder("one").TTL == time.Hour && u.holder("two").TTL == time.Hour
	})
	if ttl := u.holder("busy").TTL; ttl == time.Hour {
		t.Error("a claim was renewed inside the section of another process")
	}
}

func TestOpenFilesFollowTheLimit(t *testing.T) {
	for _, test := range []struct {
		limit uint64
		want  int
	}{
		{0, fewOpen}, {256, fewOpen}, {1024, fewOpen},
		{16384, 2048}, {20000, 2500}, {1 << 20, manyOpen}, {math.MaxUint64, manyOpen},
	} {
		if got := keepOpen(test.limit); got != test.want {
			t.Errorf("with a limit of %d files, %d stay open, want %d", test.limit, got, test.want)
		}
	}
	u := in(t, t.TempDir(), nil)
	if want := keepOpen(openLimit()); openLimit() == 0 || u.maxOpen != want {
		t.Errorf("%d files stay open, want %d by the limit of %d", u.maxOpen, want, openLimit())
	}
}

func TestFewFilesStayOpen(t *testing.T) {
	u := in(t, t.TempDir(), nil)
	u.maxOpen = 16
	var claims []driver.Ask
	before := openFiles(t)
	for i := range 3 * u.maxOpen {
		c := exclusive(fmt.Sprint("key", i))
		u.granted(c)
		claims = append(claims, c)
	}
	if n := openFiles(t) - before; n > u.maxOpen+5 || len(u.files) > u.maxOpen {
		t.Errorf("%d files are open, %d known", n, len(u.files))
	}
	for i, err := range u.Renew(t.Context(), asks.Renewals(claims...)) {
		t.Errorf("claim %d: %v", i, err)
	}
	u.must(u.Close())
	if n := openFiles(t) - before; n > 0 {
		t.Errorf("Close has left %d files open", n)
	}
}

func TestManyKeysLeaveNothingOpen(t *testing.T) {
	u := in(t, t.TempDir(), nil)
	u.maxOpen = 16
	before := openFiles(t)
	for i := range 4 * u.maxOpen {
		c := exclusive(fmt.Sprint("key", i))
		u.granted(c)
		u.release(c)
	}
	if n := openFiles(t) - before; n > u.maxOpen+5 || len(u.files) > u.maxOpen {
		t.Errorf("%d files are open, %d known", n, len(u.files))
	}
	u.watcher.mu.Lock()
	defer u.watcher.mu.Unlock()
	if n := len(u.watcher.watched); n > u.maxOpen {
		t.Errorf("the watcher knows %d keys", n)
	}
}

func TestAfterClose(t *testing.T) {
	u := in(t, t.TempDir(), nil)
	c := exclusive("key")
	u.granted(c)
	u.watch(waiting(exclusive("key")))
	u.must(u.Close(), u.Close())
	_, watchErr := u.Watch(t.Context(), c.Claim, func(driver.Grant) {})
	for _, err := range []error{u.fails(c), u.renew(c), u.Release(t.Context(), asks.Releases(c))[0], watchErr} {
		if !errors.Is(err, errClosed) {
			t.Errorf("after Close got %v, want %v", err, errClosed)
		}
	}
	entries, err := os.ReadDir(u.dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != fileName("key") {
		t.Errorf("Close has left %v, %v; want the lock file only", entries, err)
	}
}

// A line that is longer than a record holds keeps no more places.
func TestLineWithoutEnd(t *testing.T) {
	a := in(t, t.TempDir(), nil)
	holder := exclusive("key")
	a.granted(holder)
	large, small := strings.Repeat("n", 1<<18), strings.Repeat("n", 1<<16)
	var line []driver.Ask
	began := time.Now()
	for a.lineLength("key") == len(line) {
		c := waiting(exclusive("key"))
		c.Note = small
		if len(line) < 2 {
			c.Note = large
		}
		a.refused(c)
		line = append(line, c)
		if time.Since(began) > c.Alive()/2 { // so slow a machine may cost the first its place
			a.Release(t.Context(), asks.Releases(line...))
			a.must(a.renew(holder))
			line, began = nil, time.Now()
		}
	}
	if len(line) != 6 && inTime(t, began) {
		t.Errorf("%d claims, two with 256 KiB and the rest with 64 KiB each, were let in, or left out", len(line))
	}
	a.must(a.renew(holder))
	a.release(holder)
	err := a.renew(line[0])
	for _, c := range line[:len(line)-1] {
		err = errors.Join(append(a.Release(t.Context(), asks.Releases(c)), err)...)
	}
	if err != nil && inTime(t, began) {
		t.Error(err)
	}
	a.granted(line[len(line)-1])
}

// A waiter keeps its place by asking again, also when the record has grown past the limit
// for new claims.
func TestFullLineKeepsItsPlaces(t *testing.T) {
	a := in(t, t.TempDir(), nil)
	a.granted(exclusive("key"))
	first, asked := waiting(exclusive("key")), time.Now()
	a.refused(first)
	for size := 1 << 19; size >= 1<<10; size /= 2 { // what does not fit is left out
		c := waiting(exclusive("key"))
		c.Note = strings.Repeat("n", size)
		a.refused(c)
	}
	late := driver.Release{Claim: exclusive("key").Claim, Late: true}
	late.ID = strings.Repeat("i", 1<<12) // which it leaves behind
	if errs := a.Release(t.Context(), []driver.Release{late}); !errors.Is(errs[0], driver.ErrLost) {
		t.Fatal(errs[0])
	}
	before := a.firstPlace("key")
	a.refused(first)
	after := a.firstPlace("key")
	if kept := before.ID == first.ID && after.ID == first.ID; (!kept || after.Until <= before.Until) && inTime(t, asked) {
		t.Errorf("the place lasts until %v after asking again, until %v before", after.Until, before.Until)
	}
}

// holder is the first holder, as written down.
func (u *user) holder(key string) book.Entry {
	u.Helper()
	st, _, err := u.peek(key)
	u.must(err)
	if len(st.Held) == 0 {
		u.Fatalf("nobody holds %s", key)
	}
	return st.Held[0]
}

// firstPlace is the first place in the queue, as written down, or nobody's if the queue is empty.
func (u *user) firstPlace(key string) (e book.Entry) {
	u.Helper()
	st, _, err := u.peek(key)
	u.must(err)
	if len(st.Queue) > 0 {
		e = st.Queue[0]
	}
	return e
}

func (u *user) lineLength(key string) (n int) {
	u.Helper()
	list, err := u.Holders(context.Background(), key)
	u.must(err)
	return len(list) - 1
}
