package filelock

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/must"
)

// Tests of several processes run this test's own binary again: roles says what
// a child does with the directory of its parent.
var roles = map[string]func(s *Store, dir string, args []string) error{
	"hold":  hold,
	"storm": storm,
	"count": count,
	"relay": relay,
	"try":   try,
}

const roleVariable = "FILELOCK_TEST_ROLE"

func TestMain(m *testing.M) {
	role, ok := os.LookupEnv(roleVariable)
	if !ok {
		flag.Parse()
		flag.Set("test.parallel", "16") // Most tests wait for something.
		os.Exit(m.Run())
	}
	s := must.Get(New(os.Args[1], nil))
	err := errors.Join(roles[role](s, os.Args[1], os.Args[2:]), s.Close())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A child is another process.
type child struct {
	testing.TB
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func spawn(t testing.TB, role, dir string, args ...string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return start(t, role, exec.Command(self, append([]string{dir}, args...)...))
}

func start(t testing.TB, role string, cmd *exec.Cmd) *child {
	t.Helper()
	c := &child{TB: t, Cmd: cmd}
	// The race detector would make each child wait for a second at its end.
	c.Env = append(os.Environ(), roleVariable+"="+role, "GORACE=atexit_sleep_ms=0")
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.in, c.out = in, bufio.NewScanner(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

// kill ends a child without any chance to tidy up.
func (c *child) kill() {
	_ = c.Process.Kill() // It may have ended.
	_ = c.Wait()
}

// says waits for the next line of a child.
func (c *child) says() string {
	c.Helper()
	if !c.out.Scan() {
		c.Fatalf("the child has ended: %v", c.out.Err())
	}
	return c.out.Text()
}

// hold takes keys, says so and stays.
func hold(s *Store, _ string, keys []string) error {
	for _, key := range keys {
		if g, err := s.Acquire(context.Background(), waiting(exclusive(key))); err != nil {
			return err
		} else if g.OK {
			fmt.Println("holds", key)
		} else {
			fmt.Println("waits for", key)
		}
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// try opens a URL and says what becomes of one claim.
func try(_ *Store, url string, keys []string) error {
	ctx := context.Background()
	s, err := driver.Open(ctx, url)
	if err != nil {
		fmt.Println(err)
		return nil
	}
	switch g, err := s.Acquire(ctx, exclusive(keys[0])); {
	case err != nil:
		fmt.Println(err)
	case g.OK:
		fmt.Println("granted")
	default:
		fmt.Println("refused")
	}
	return s.Close()
}

func TestKilledHolderIsOutAtOnce(t *testing.T) {
	either(t, func(t *testing.T, a, _ *user) {
		c := spawn(t, "hold", a.dir, "key", "other")
		for _, key := range []string{"key", "other"} {
			if got := c.says(); got != "holds "+key {
				t.Fatalf("the child says %q", got)
			}
		}
		next := waiting(exclusive("key"))
		a.refused(next)
		wakes := a.watch(next)
		a.refused(next)
		c.kill()
		for !receive(t, wakes, "a wake that leads to the grant").OK && !a.acquire(next).OK {
		}
		a.granted(exclusive("other"))
		if sessions := a.sessions(); len(sessions) != 1 {
			t.Errorf("there are the sessions %q, want one", sessions)
		}
	})
}

func (u *user) sessions() (ids []string) {
	u.Helper()
	paths, err := filepath.Glob(u.sessionPath("*"))
	u.must(err)
	return paths
}

func TestKilledWaiterIsPassedOver(t *testing.T) {
	a, b := pair(t, false)
	holder, next := exclusive("key"), waiting(exclusive("key"))
	a.granted(holder)
	c := spawn(t, "hold", a.dir, "key")
	if got := c.says(); got != "waits for key" {
		t.Fatalf("the child says %q", got)
	}
	b.refused(next)
	wakes := b.watch(next)
	c.kill()
	a.release(holder)
	for !receive(t, wakes, "a wake that leads to the grant").OK && !b.acquire(next).OK {
	}
}

// storm asks, renews and releases as fast as it can, with notes that are long
// now and then.
func storm(s *Store, _ string, keys []string) error {
	ctx := context.Background()
	fmt.Println("begins")
	for {
		c := exclusive(keys[rand.IntN(len(keys))])
		c.Note = strings.Repeat("n", rand.IntN(3)*rand.IntN(inline))
		c.Wait = rand.IntN(2) == 0
		_, err := s.Acquire(ctx, c)
		for _, errs := range [][]error{s.Renew(ctx, asks.Renewals(c)), s.Release(ctx, asks.Releases(c))} {
			if errs != nil && !errors.Is(errs[0], driver.ErrLost) {
				err = errors.Join(err, errs[0])
			}
		}
		if err != nil {
			return err
		}
	}
}

// Whenever processes are killed, their lock files can be read, and are free. In the short
// form, fewer processes are killed.
func TestKilledInTheMiddleOfWrites(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	dir := t.TempDir()
	keys := []string{"a", "b", "c"}
	for range rounds {
		var children []*child
		for range 3 {
			c := spawn(t, "storm", dir, keys...)
			c.says()
			children = append(children, c)
		}
		<-time.After(time.Duration(rand.IntN(20)) * time.Millisecond)
		for _, c := range children {
			c.kill()
		}
		u := in(t, dir, nil)
		for _, key := range keys {
			c := exclusive(key)
			u.granted(c)
			u.release(c)
		}
		u.must(u.Close())
	}
	if left := in(t, dir, nil).sessions(); len(left) > 3*rounds {
		t.Errorf("%d sessions are left", len(left))
	}
}

// count adds to a number in a file, with goroutines that each hold the lock
// when they do.
func count(s *Store, dir string, args []string) error {
	goroutines, _ := strconv.Atoi(args[0])
	times, _ := strconv.Atoi(args[1])
	var group sync.WaitGroup
	errs := make(chan error, goroutines)
	for range goroutines {
		group.Go(func() {
			for range times {
				if err := locked(s, "counter", func() error { return increment(filepath.Join(dir, "counter")) }); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(errs)
	return <-errs
}

// locked does what the core does, in its simplest form.
func locked(s *Store, key string, do func() error) error {
	ctx := context.Background()
	c := waiting(exclusive(key))
	wakes := make(chan struct{}, 1)
	stop, err := s.Watch(ctx, c.Claim, func(driver.Grant) {
		select {
		case wakes <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	for {
		g, err := s.Acquire(ctx, c)
		if err != nil {
			return err
		}
		if g.OK {
			break
		}
		select {
		case <-wakes:
		case <-time.After(time.Second):
		}
	}
	err = do()
	return errors.Join(append(s.Release(ctx, asks.Releases(c)), err)...)
}

func increment(path string) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	n, _ := strconv.Atoi(string(text))
	return os.WriteFile(path, []byte(strconv.Itoa(n+1)), 0o600)
}

func TestCounter(t *testing.T) {
	const processes, goroutines, times = 3, 4, 50
	dir := t.TempDir()
	var children []*child
	for range processes {
		children = append(children, spawn(t, "count", dir, fmt.Sprint(goroutines), fmt.Sprint(times)))
	}
	for _, c := range children {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "counter"))
	if err != nil || string(text) != strconv.Itoa(processes*goroutines*times) {
		t.Errorf("counted to %s, %v; want %d", text, err, processes*goroutines*times)
	}
}
