package zklock

import (
	"bytes"
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
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/zoo"
)

var update = flag.Bool("update", false, "write the nodes of testdata anew")

// A rawUser reads and writes nodes by a session of its own.
type rawUser struct {
	testing.TB
	store   *Store
	session *session
}

func raw(t testing.TB, addrs ...string) *rawUser {
	t.Helper()
	s := must.Get(New(addrs, nil))
	t.Cleanup(func() { s.Close() })
	return &rawUser{t, s, sessionOf(t, s, usual)}
}

// do makes a request until it is answered. The errors in done are the answers to a second request if
// the first has taken effect, and was not answered.
func (u *rawUser) do(r zoo.Request, done ...error) *zoo.Call {
	u.Helper()
	call, err := u.session.ask(bounded(u), r)
	for errors.Is(err, zoo.ErrUnknown) {
		call, err = u.session.ask(bounded(u), r)
		if slices.ContainsFunc(done, func(answer error) bool { return errors.Is(err, answer) }) {
			err = nil
		}
	}
	if err != nil {
		u.Fatal(err)
	}
	return call
}

// create creates a node of a claim, together with the node of its key.
func (u *rawUser) create(key, name, data string) (path string) {
	u.Helper()
	path = u.store.dir(key) + "/" + name
	above := parents(path)
	made := ""
	servers.Until(u, "the node "+path, func() bool { // Other tests make nodes above it meanwhile.
		call, err := u.session.ask(bounded(u), zoo.Create(path, data, u.store.acl, zoo.Ephemeral))
		for missing := 1; errors.Is(err, zoo.NoNode) && missing <= len(above); missing++ {
			call, err = u.session.ask(bounded(u), zoo.CreateAll(above[len(above)-missing:], path, data, u.store.acl, zoo.Ephemeral))
		}
		if err == nil {
			made, _ = call.Made()
		}
		return err == nil
	})
	return made
}

// nodes returns the nodes of a key, and the node of the key, a line each.
func (u *rawUser) nodes(key string) string {
	u.Helper()
	dir := u.store.dir(key)
	call := u.do(zoo.Get(dir))
	text, _ := call.Data()
	all := fmt.Sprintf("%s %q\n", key, text)
	names := u.do(zoo.List(dir)).Children()
	for _, name := range names {
		text, _ := u.do(zoo.Get(dir + "/" + name)).Data()
		all += fmt.Sprintf("%s/%s %s\n", key, name, text)
		for _, member := range u.do(zoo.List(dir + "/" + name)).Children() {
			all += fmt.Sprintf("%s/%s/%s\n", key, name, member)
		}
	}
	return all
}

// newer puts a claim of the next format in place of the holder.
func (u *rawUser) newer(key string) (record func() string) {
	u.Helper()
	path := u.create(key, "2-a_later-name-", "later text")
	for _, name := range u.do(zoo.List(u.store.dir(key))).Children() {
		if formatOf(name) == format {
			u.do(zoo.Delete(u.store.dir(key)+"/"+name), zoo.NoNode)
		}
	}
	return func() string {
		text, stat := u.do(zoo.Get(path)).Data()
		return fmt.Sprint(u.do(zoo.List(u.store.dir(key))).Children(), text, stat)
	}
}

// A change of the format needs another number, and a release that reads it before one that
// writes it.
func TestGolden(t *testing.T) {
	t.Parallel()
	a, b, u := must.Get(New([]string{server.Addr()}, nil)), must.Get(New([]string{server.Addr()}, nil)), raw(t, server.Addr())
	t.Cleanup(func() { a.Close() })
	t.Cleanup(func() { b.Close() })
	claim := func(key, id string, weight int64) driver.Ask {
		c := driver.Claim{Key: key, ID: id, Owner: "me", Note: "a note", Weight: weight, Limit: driver.MaxWeight, TTL: 15 * time.Second}
		return driver.Ask{Claim: c, Span: 1}
	}

	waiter := claim("golden", "waiter", driver.MaxWeight)
	waiter.Wait = true
	granted(t, a, claim("golden", "reader", 1))
	mixture{t, b, "golden"}.wait(waiter)
	wrote := regexp.MustCompile(`\d{10} \{`).ReplaceAllString(u.nodes("golden"), "NUMBER {")
	wrote = regexp.MustCompile(`"1 \d+ 0"`).ReplaceAllString(wrote, `"1 TOKEN 0"`)
	lines := strings.SplitAfter(strings.TrimSuffix(wrote, "\n"), "\n")
	const testdata = "testdata/nodes.txt"
	if *update {
		if err := os.WriteFile(testdata, []byte(wrote), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(testdata)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines { // The servers list nodes in any order.
		if !bytes.Contains(want, []byte(line)) || len(wrote) != len(want) {
			t.Fatalf("this release writes\n%s\nand testdata has\n%s", wrote, want)
		}
	}

	// The same nodes, by a session that nobody of this release owns.
	put := func(id, key string) (path string) {
		t.Helper()
		text := regexp.MustCompile(`(?m)^golden/(\S+-` + driver.PublicID(id) + `-)NUMBER (.+)$`).FindSubmatch(want)
		return u.create(key, string(text[1]), string(text[2]))
	}
	reader := put("reader", "put")
	dir := u.store.dir("put")
	u.do(zoo.Set(dir, "1 64 0", -1))
	u.do(zoo.Create(dir+"/phase", "", u.store.acl, zoo.Container), zoo.NodeExists)
	member := dir + "/phase/" + driver.PublicID("reader")
	u.do(zoo.Create(member, "", u.store.acl, zoo.Member), zoo.NodeExists)
	holders, err := b.Holders(bounded(t), "put")
	if err != nil || len(holders) != 1 || holders[0].Owner != "me" || holders[0].Note != "a note" || holders[0].Fence != 64 {
		t.Errorf("told %+v, %v; want the reader with token 64", holders, err)
	}
	if g := granted(t, a, claim("put", "another", 1)); g.Fence != 64 {
		t.Errorf("a second reader has token %d, want that of the first, 64", g.Fence)
	}
	if err := release(bounded(t), a, claim("put", "another", 1)); err != nil {
		t.Fatal(err)
	}
	refused(t, a, claim("put", "writer", driver.MaxWeight))
	exclusive := put("waiter", "put")
	refused(t, a, claim("put", "late reader", 1)) // does not pass the waiter
	u.do(zoo.Multi(zoo.Delete(reader), zoo.Delete(member)), zoo.NoNode)
	refused(t, a, claim("put", "writer", driver.MaxWeight))
	u.do(zoo.Delete(exclusive), zoo.NoNode)
	if g := granted(t, a, claim("put", "writer", driver.MaxWeight)); g.Fence <= 64 {
		t.Errorf("the writer has token %d, and the readers had 64", g.Fence)
	}
}

// The tokens of readers may be of a newer release, though all claims are of this one.
func TestNewerMarks(t *testing.T) {
	t.Parallel()
	s, u := must.Get(New([]string{server.Addr()}, nil)), raw(t, server.Addr())
	t.Cleanup(func() { s.Close() })
	stays := u.create("marks", placeName(driver.Claim{ID: "other", Weight: 1, Limit: driver.MaxWeight}), "{}")
	u.do(zoo.Set(u.store.dir("marks"), "2 later text", -1))
	before := u.nodes("marks")
	reader := exclusive("marks", "reader")
	reader.Weight, reader.Wait = 1, true
	for range 2 {
		if g, err := s.Acquire(bounded(t), reader); g.OK || !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), `"marks" has format 2`) {
			t.Errorf("Acquire: %+v, %v; want an ErrInvalid that names key and format", g, err)
		}
	}
	if after := u.nodes("marks"); after != before {
		t.Errorf("the nodes have changed from\n%s\nto\n%s", before, after)
	}
	u.do(zoo.Delete(stays), zoo.NoNode)
}
