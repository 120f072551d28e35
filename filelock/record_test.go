package filelock

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/newer"
	"github.com/holdfast-go/holdfast/internal/safefile"
)

// A shelf is a record in a file of its own.
type shelf struct {
	*testing.T
	path string
}

func newShelf(t *testing.T) shelf { return shelf{t, filepath.Join(t.TempDir(), "record")} }

// write puts a text of one repeated letter into the slot to write next, as a
// critical section does.
func (s shelf) write(letter string, length int) {
	s.Helper()
	h := s.open()
	defer h.Close()
	var page [pageSize]byte
	last, next, err := readRecord(h, "key", &page)
	if err != nil {
		s.Fatal(err)
	}
	version := slot{seq: last.seq + 1, written: book.Moment{Now: 7, Wall: 8}}
	if err := version.write(h, next, []byte(strings.Repeat("h", headerSize)+strings.Repeat(letter, length))); err != nil {
		s.Fatal(err)
	}
}

func (s shelf) open() safefile.Handle {
	s.Helper()
	h, err := safefile.Open(s.path, true)
	if errors.Is(err, os.ErrNotExist) {
		h, err = safefile.Create(s.path, private)
	}
	if err != nil {
		s.Fatal(err)
	}
	return h
}

func (s shelf) read() (slot, error) {
	s.Helper()
	h := s.open()
	defer h.Close()
	var page [pageSize]byte
	version, _, err := readRecord(h, "key", &page)
	version.text = slices.Clone(version.text)
	return version, err
}

// holds expects a text of one repeated letter.
func (s shelf) holds(letter string, length int) {
	s.Helper()
	version, err := s.read()
	if err != nil || string(version.text) != strings.Repeat(letter, length) || version.written != (book.Moment{Now: 7, Wall: 8}) {
		s.Fatalf("read %.20q... (%d bytes), %v, want %d times %s", version.text, len(version.text), err, length, letter)
	}
}

func (s shelf) bytes() []byte {
	s.Helper()
	b, err := os.ReadFile(s.path)
	if err != nil {
		s.Fatal(err)
	}
	return b
}

func (s shelf) put(b []byte) {
	s.Helper()
	if err := os.WriteFile(s.path, b, 0o600); err != nil {
		s.Fatal(err)
	}
}

func TestRecordTakesTurns(t *testing.T) {
	s := newShelf(t)
	for i, length := range []int{0, 100, inline, inline + 1, 10, maxText, 20_000, 5} {
		letter := string(rune('a' + i))
		s.write(letter, length)
		s.holds(letter, length)
	}
	if version, err := s.read(); version.seq != 8 || err != nil {
		t.Errorf("after 8 writes the record is version %d, %v", version.seq, err)
	}
}

// A process that is killed in the middle of a write leaves some of it behind.
func TestRecordHalfWritten(t *testing.T) {
	for _, length := range []int{100, inline, 3 * pageSize} {
		s := newShelf(t)
		s.write("a", length)
		s.write("b", length)
		before := s.bytes()
		s.write("c", length)
		after := s.bytes()
		// In the order of the writes: the area, then the slot.
		at := 0
		half := slices.Clone(before)
		for _, part := range [][2]int{{pageSize, pageSize + maxText}, {0, slotSize}} {
			for i := part[0]; i < min(part[1], len(after)); i++ {
				if half[i] == after[i] {
					continue
				}
				if at%61 == 0 {
					s.put(half)
					s.holds("b", length)
				}
				half[i] = after[i]
				at++
			}
		}
		if !bytes.Equal(half, after) {
			t.Fatal("the test did not end with all written")
		}
		s.put(half)
		s.holds("c", length)
	}
}

// If a bit of the newest version is wrong, the version before counts.
func TestRecordBitFlipped(t *testing.T) {
	s := newShelf(t)
	s.write("a", 100)
	s.write("b", 100)
	good := s.bytes()
	for bit := range 8 * (headerSize + 100) {
		bad := slices.Clone(good)
		bad[slotSize+bit/8] ^= 1 << (bit % 8)
		s.put(bad)
		s.holds("a", 100)
	}
	s.put(good)
	s.holds("b", 100)
}

func TestRecordOfAnUnfinishedFileIsFresh(t *testing.T) {
	for name, content := range map[string]string{
		"empty":           "",
		"zeros":           strings.Repeat("\x00", 100),
		"a page of zeros": strings.Repeat("\x00", pageSize),
		"zeros and areas": strings.Repeat("\x00", 2*pageSize),
		"part of a magic": magic[:3],
		"almost a magic":  magic[:len(magic)-1],
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			s.put([]byte(content))
			if version, err := s.read(); err != nil || version.seq != 0 {
				t.Fatalf("read version %d, %v, want none", version.seq, err)
			}
			s.write("a", 30)
			s.holds("a", 30)
		})
	}
}

func TestRecordThatIsNone(t *testing.T) {
	s := newShelf(t)
	s.write("a", 100)
	s.write("b", 100)
	record := s.bytes()
	onlyOld := slices.Clone(record)
	clear(onlyOld[slotSize:])
	both := slices.Clone(record)
	both[0]++
	both[slotSize]++
	texts := slices.Clone(record)
	clear(texts[:headerSize])
	clear(texts[slotSize:][:headerSize])
	for name, content := range map[string][]byte{
		"a text":             []byte("Dear diary,\n"),
		"a pid file":         []byte("4711\n"),
		"a long text":        bytes.Repeat([]byte("Dear diary,\n"), 1000),
		"one byte":           {1},
		"zeros and a byte":   append(make([]byte, pageSize-1), 1),
		"both slots damaged": both,
		"cut in its slots":   record[:slotSize],
		"cut in its text":    record[:headerSize+50],
		"cut in its header":  record[:headerSize-1],
		"short by a byte":    record[:pageSize-1],
		"texts only":         texts,
	} {
		t.Run(name, func(t *testing.T) {
			s := shelf{t, filepath.Join(t.TempDir(), "record")}
			s.put(content)
			if version, err := s.read(); !errors.Is(err, errGarbage) {
				t.Errorf("read version %d, %v, want %v", version.seq, err, errGarbage)
			}
			if !bytes.Equal(s.bytes(), content) {
				t.Error("reading has changed the file")
			}
		})
	}
	s.put(onlyOld)
	s.holds("a", 100)
}

func TestRecordOfANewerVersion(t *testing.T) {
	s := newShelf(t)
	s.write("a", 10)
	s.write("b", 10)
	b := s.bytes()
	header, text := b[slotSize:][:headerSize], b[slotSize+headerSize:][:10]
	header[8]++
	sign(header, text)
	s.put(b)
	if version, err := s.read(); !errors.As(err, new(*newer.Error)) {
		t.Errorf("read version %d, %v, want an error that names the format", version.seq, err)
	}
}

// FuzzRecord reads what anybody may have written into a lock file: the
// beginnings of its slots and of an area, checksums right or wrong.
func FuzzRecord(f *testing.F) {
	header := append([]byte(magic), format, 0, 0, 0, 5, 0, 0, 0, 1)
	f.Add(header, []byte("text"), uint(pageSize), true)
	f.Add(header, append(header[:10:10], flagFar, 0, 4, 0, 0, 0, 9), uint(pageSize+maxText+9), true)
	f.Add([]byte("Dear diary,"), []byte{}, uint(50), false)
	f.Add([]byte(magic)[:5], []byte{}, uint(5), false)
	path := filepath.Join(f.TempDir(), "record")
	f.Fuzz(func(t *testing.T, first, second []byte, size uint, signed bool) {
		content := make([]byte, 2*pageSize)
		copy(content[:slotSize], first)
		copy(content[slotSize:], second)
		if signed {
			sign(content[:headerSize], content[headerSize:][:min(int(content[12]), inline)])
			sign(content[slotSize:][:headerSize], content[pageSize:][:content[slotSize+12]])
		}
		content = content[:min(size, uint(len(content)))]
		s := shelf{t, path}
		s.put(content)
		switch version, err := s.read(); {
		case err == nil && version.seq == 0 && strings.Trim(string(content), "\x00"+magic) != "":
			t.Errorf("%q counts as fresh", content)
		case err != nil && !errors.Is(err, errGarbage) && !errors.As(err, new(*newer.Error)):
			t.Errorf("%q is refused by %v", content, err)
		}
		if !bytes.Equal(s.bytes(), content) {
			t.Error("reading has changed the file")
		}
	})
}
