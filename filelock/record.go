package filelock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/newer"
	"github.com/holdfast-go/holdfast/internal/safefile"
)

// A record is the contents of a lock file: one page of two slots, with a header and a text
// per slot. A write always goes to the slot that does not count. A process killed at any
// point of the write therefore leaves the slot that counts. A text too long for its slot
// goes to an area behind the page.
//
//	0      8        10     12      16   24   32    40   44
//	magic  version  flags  length  seq  now  wall  crc  text ...
//
// Numbers are little-endian. The checksum covers the header before it, and the
// text. The valid slot with the larger seq counts.
//
// A later format may change the text alone: a release that cannot read the text must still
// find out which slot counts, and of which format it is.
const (
	magic  = "holdfast"
	format = 1 // the version of the record

	pageSize   = 4096
	slotSize   = pageSize / 2
	headerSize = 44
	crcAt      = 40
	inline     = slotSize - headerSize
	maxText    = 1 << 20
	maxNewText = maxText / 4 * 3 // no new claims beyond, to leave room to rewrite the existing claims

	flagFar = 1 // of a record: the text is in its area
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errGarbage  = permanent{errors.New("it is damaged or no lock file; if no process uses it, remove it")}
	errOtherKey = permanent{errors.New("it belongs to another key; if no process uses it, remove it")}
	errTooLong  = fmt.Errorf("more claims than fit into %d bytes", maxText)
)

// A slot is one version of a record.
type slot struct {
	seq     uint64 // 0: nothing was ever written
	written book.Moment
	text    []byte
}

// readRecord returns the version that counts of the record of a key, and the slot to write
// next. The result may share memory with page.
func readRecord(h safefile.Handle, key string, page *[pageSize]byte) (s slot, next int, err error) {
	n, err := readAt(h, page[:], 0)
	if err != nil {
		return slot{}, 0, err
	}
	if n < pageSize {
		// The first write is a whole page; a shorter file counts for nothing.
		if !fresh(page[:n]) {
			err = errGarbage
		}
		return slot{}, 0, err
	}
	first := 0
	if sequence(page, 1) > sequence(page, 0) {
		first = 1
	}
	for _, i := range [...]int{first, 1 - first} {
		if s, ok, err := readSlot(h, key, page, i); ok || err != nil {
			return s, 1 - i, err
		}
	}
	if !fresh(page[:]) {
		err = errGarbage
	}
	return slot{}, 0, err
}

// fresh reports whether a file that begins with page has never held a grant: the machine,
// or the creating process, died during the creation.
func fresh(page []byte) bool {
	if n := len(page); n < len(magic) && string(page) == magic[:n] {
		return true
	}
	return !slices.ContainsFunc(page, func(b byte) bool { return b != 0 })
}

// sequence is the number of a slot, which may be invalid.
func sequence(page *[pageSize]byte, i int) uint64 {
	return binary.LittleEndian.Uint64(page[i*slotSize+16:])
}

// readSlot reads a slot and reports whether it is valid.
func readSlot(h safefile.Handle, key string, page *[pageSize]byte, i int) (slot, bool, error) {
	header, rest := page[i*slotSize:][:headerSize], page[i*slotSize+headerSize:][:inline]
	length := int(binary.LittleEndian.Uint32(header[12:]))
	var text []byte
	switch far := header[10]&flagFar != 0; {
	case string(header[:len(magic)]) != magic || sequence(page, i) == 0:
		return slot{}, false, nil
	case far && length <= maxText:
		text = make([]byte, length)
		n, err := readAt(h, text, area(i))
		if err != nil {
			return slot{}, false, err
		}
		text = text[:n]
	case !far && length <= inline:
		text = rest[:length]
	}
	if checksum(header, text) != binary.LittleEndian.Uint32(header[crcAt:]) {
		return slot{}, false, nil
	}
	if err := newer.Check(key, int64(binary.LittleEndian.Uint16(header[8:])), format, newer.Stays); err != nil {
		return slot{}, false, err
	}
	return slot{
		seq: sequence(page, i),
		written: book.Moment{
			Now:  time.Duration(binary.LittleEndian.Uint64(header[24:])),
			Wall: int64(binary.LittleEndian.Uint64(header[32:])),
		},
		text: text,
	}, true, nil
}

// write puts the next version into slot i. The text follows headerSize free bytes in buf.
func (s slot) write(h safefile.Handle, i int, buf []byte) error {
	header, text := buf[:headerSize], buf[headerSize:]
	clear(header)
	copy(header, magic)
	binary.LittleEndian.PutUint16(header[8:], format)
	binary.LittleEndian.PutUint32(header[12:], uint32(len(text)))
	binary.LittleEndian.PutUint64(header[16:], s.seq)
	binary.LittleEndian.PutUint64(header[24:], uint64(s.written.Now))
	binary.LittleEndian.PutUint64(header[32:], uint64(s.written.Wall))
	far := len(text) > inline
	if far {
		header[10] = flagFar
	}
	binary.LittleEndian.PutUint32(header[crcAt:], checksum(header, text))
	if far {
		if err := writeAt(h, text, area(i)); err != nil {
			return err
		}
		buf = header
	}
	if s.seq == 1 {
		// Write the whole page: no later write finds the disk full.
		page := make([]byte, pageSize)
		copy(page, buf)
		buf = page
	}
	return writeAt(h, buf, int64(i*slotSize))
}

func checksum(header, text []byte) uint32 {
	return crc32.Update(crc32.Checksum(header[:crcAt], castagnoli), castagnoli, text)
}

// area is the offset of the long text of a slot.
func area(i int) int64 { return int64(pageSize + i*maxText) }

// of adds the path of the file to an error.
func of(path string, err error) error {
	if err == nil {
		return nil
	}
	if told := (*fs.PathError)(nil); errors.As(err, &told) {
		return err
	}
	return &fs.PathError{Op: "lock file", Path: path, Err: err}
}
