package filelock

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/flock"
	"github.com/holdfast-go/holdfast/internal/goldentest"
	"github.com/holdfast-go/holdfast/internal/safefile"
)

var update = flag.Bool("update", false, "write the records of testdata anew")

// newer makes the record of a key one of the next format.
func (d *dirs) newer(t testing.TB, key string) (record func() string) {
	dir, _ := d.byTest.Load(t)
	path := filepath.Join(dir.(string), fileName(key))
	Later(t, path)
	return func() string { return string(read(t, path)) }
}

// Later makes a record one of the next format, whose text this release cannot read. A newer release
// takes the lock of the file, too: no call of this release is between its read and its write.
func Later(t testing.TB, path string) {
	h, err := safefile.Open(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := (&file{path: path, h: h}).await(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := read(t, path)
	for i := range 2 {
		if header := b[i*slotSize:][:headerSize]; sequence((*[pageSize]byte)(b), i) > 0 {
			header[8] = format + 1
			header[10], header[12], header[13] = 0, 5, 0
			sign(header, append(b[i*slotSize+headerSize:][:0], "other"...))
		}
	}
	if err := writeAt(h, b, 0); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// session1 and session2 are the sessions of the records in testdata, by another clock.
const session1, session2 = "0123456789abcdef", "fedcba9876543210"

// goldens are the records in testdata, by the name of their file.
var goldens = map[string]book.Book{
	"holder": {
		Floor: 1_700_000_000_000_002,
		Held: []book.Entry{{
			ID: "holder", Owner: "me", Note: "a note", Session: session1, Weight: driver.MaxWeight, Limit: driver.MaxWeight,
			TTL: time.Minute, Until: 80 * time.Second, Asked: 20 * time.Second, Since: written.Wall, Span: 3, Fence: 1_700_000_000_000_000,
		}},
	},
	"queue": {
		Floor: 1_700_000_000_000_000, Phase: 1_700_000_000_000_000,
		Held: []book.Entry{
			{
				ID: "reader", Session: session1, Weight: 1, Limit: driver.MaxWeight,
				TTL: time.Minute, Until: 80 * time.Second, Asked: 20 * time.Second, Since: written.Wall, Span: 1, Fence: 1_700_000_000_000_000,
			},
			{
				ID: "left", Left: true, Weight: 1, Limit: driver.MaxWeight,
				TTL: time.Minute, Until: 80 * time.Second, Asked: 20 * time.Second, Since: written.Wall, Span: 1, Fence: 1_700_000_000_000_000,
			},
		},
		Queue: []book.Entry{{
			ID: "waiter", Session: session2, Weight: driver.MaxWeight, Limit: driver.MaxWeight,
			TTL: time.Minute, Until: 23 * time.Second, Asked: 20 * time.Second, Since: written.Wall, Span: 1,
		}},
		Tombs: []book.Tomb{{ID: "late", Until: 30 * time.Second}, {ID: "broken", Until: 80 * time.Second, Broken: true}},
	},
}

// golden puts a record of testdata into a new directory, as another host would write it on a
// share, and returns a user who meets it at the time of writing.
func golden(t *testing.T, name string) *user {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName(name)), testdata(t, name), private); err != nil {
		t.Fatal(err)
	}
	return in(t, dir, &Options{Clock: func() time.Time { return time.UnixMicro(written.Wall) }})
}

// lives keeps a session of testdata alive until end is called.
func (u *user) lives(session string) (end func()) {
	u.Helper()
	h, err := safefile.Create(u.sessionPath(session), private)
	u.must(err)
	if free, err := flock.Try(uintptr(h), true); !free || err != nil {
		u.Fatal(free, err)
	}
	return func() { h.Close() }
}

// A change of the format needs another number, and a release that reads it before one that
// writes it.
func TestFormatIsThatOfTestdata(t *testing.T) {
	for name, b := range goldens {
		s := shelf{t, filepath.Join(t.TempDir(), name)}
		h := s.open()
		st := state{key: name, Book: b}
		text := st.encode(make([]byte, headerSize), writer.clock)
		if err := (slot{seq: 1, written: writer.Moment}).write(h, 0, text); err != nil {
			t.Fatal(err)
		}
		h.Close()
		if *update {
			text := hex.Dump(bytes.TrimRight(s.bytes(), "\x00"))
			if err := os.WriteFile(filepath.Join("testdata", name+".hex"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(s.bytes(), testdata(t, name)) {
			t.Errorf("this release writes the record %s otherwise than in testdata:\n%s", name, hex.Dump(s.bytes()))
		}
	}
}

// testdata reads a record, which is there as hex.Dump prints it, without the zeros at its end.
func testdata(t *testing.T, name string) []byte {
	t.Helper()
	var b []byte
	for line := range strings.Lines(string(read(t, filepath.Join("testdata", name+".hex")))) {
		line, _, _ = strings.Cut(line[len("00000000"):], "|")
		part, err := hex.DecodeString(strings.Join(strings.Fields(line), ""))
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, part...)
	}
	return append(b, make([]byte, pageSize-len(b))...)
}

func TestGoldenHolder(t *testing.T) {
	t.Parallel()
	u := golden(t, "holder")
	defer u.lives(session1)()
	b := goldens["holder"]
	goldentest.Holder(t, u.Store, b.Held[0].Fence, b.Floor)
}

func TestGoldenHolderHasDied(t *testing.T) {
	t.Parallel()
	golden(t, "holder").granted(exclusive("holder"))
}

func TestGoldenQueue(t *testing.T) {
	t.Parallel()
	u := golden(t, "queue")
	defer u.lives(session1)()
	defer u.lives(session2)()
	goldentest.Queue(t, u.Store, goldens["queue"].Phase)
}
