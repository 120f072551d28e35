package zklock

import (
	"fmt"
	"strings"
)

// The nodes of a key are
//
//	/chroot/prefix/KEY                            a container
//	/chroot/prefix/KEY/1-WEIGHT-LIMIT-ID-NUMBER   a claim; 1 is the format
//	/chroot/prefix/KEY/phase                      while readers hold: see phase.go
//	/chroot/prefix/KEY/phase/ID                   a reader that holds
//
// Distinct keys never share a node. Bytes other than letters, digits, -, _ and single
// dots are written as % and two hex digits. A dot at the start or after a dot is
// escaped, too.

const hexDigits = "0123456789ABCDEF"

// nodeName returns the node name of a key.
func nodeName(key string) string {
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.' && i > 0 && key[i-1] != '.':
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	return b.String()
}

// keyOf returns the key of a node name, false if the name belongs to no key.
func keyOf(name string) (string, bool) {
	var b strings.Builder
	for rest := name; rest != ""; {
		before, after, found := strings.Cut(rest, "%")
		b.WriteString(before)
		if !found {
			break
		}
		if len(after) < 2 {
			return "", false
		}
		high, low := strings.IndexByte(hexDigits, after[0]), strings.IndexByte(hexDigits, after[1])
		if high < 0 || low < 0 {
			return "", false
		}
		b.WriteByte(byte(high<<4 | low))
		rest = after[2:]
	}
	key := b.String()
	return key, nodeName(key) == name
}

// parents returns the nodes above a node, the topmost first.
func parents(path string) (all []string) {
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			all = append(all, path[:i])
		}
	}
	return all
}

// checkPath returns what is wrong with a node path.
func checkPath(what, path string) error {
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if part == "" || part == "." || part == ".." || part == "zookeeper" {
			return fmt.Errorf("the %s %q cannot be: no part of it may be empty, a dot, two, or the word zookeeper", what, path)
		}
		for _, r := range part {
			if r < 0x20 || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 {
				return fmt.Errorf("the %s %q has characters that ZooKeeper does not take", what, path)
			}
		}
	}
	return nil
}
