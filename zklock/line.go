package zklock

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/newer"
)

// format is the version of what the nodes of a key say: of the names of claims, which begin
// with the format, and of the data of the key's node. A queue with a claim of a later format
// cannot be read. A later format may change everything behind the format.
const format = 1

// A place is the node of a claim among the nodes of its key. The name contains
// everything that other clients must know of the claim.
type place struct {
	name          string
	weight, limit int64
	id            string // public
	number        int32
}

// placeName returns the prefix of a claim's node name. The server appends the number.
func placeName(c driver.Claim) string {
	return fmt.Sprintf("%d-%x-%x-%s-", format, c.Weight, c.Limit, driver.PublicID(c.ID))
}

// parsePlace reads the name of a node, false if the node is not a claim.
func parsePlace(name string) (p place, ok bool) {
	parts := strings.SplitN(name, "-", 5)
	if len(parts) != 5 || formatOf(name) != format {
		return p, false
	}
	weight, err1 := strconv.ParseInt(parts[1], 16, 64)
	limit, err2 := strconv.ParseInt(parts[2], 16, 64)
	number, err3 := strconv.ParseInt(parts[4], 10, 32)
	ok = err1 == nil && err2 == nil && err3 == nil && 1 <= weight && weight <= limit && limit <= driver.MaxWeight
	return place{name, weight, limit, parts[3], int32(number)}, ok
}

// formatOf returns the format of a node of a claim, 0 if the node is not a claim.
func formatOf(name string) int64 {
	first, _, _ := strings.Cut(name, "-")
	found, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0
	}
	return found
}

func (p place) exclusive() bool { return p.weight == driver.MaxWeight }
func (p place) shared() bool    { return p.limit == driver.MaxWeight && p.weight < driver.MaxWeight }

// A line is the queue of claims on a key, in FIFO order.
type line struct {
	places []place
	phase  bool  // there is a phase of readers
	newest int64 // the largest format of a claim, if larger than format
}

// unread returns why the queue of a key cannot be read.
func (l line) unread(key string) error {
	return newer.Check(key, max(l.newest, format), format, newer.Passes)
}

// parseLine reads the names of all nodes of a key.
func parseLine(names []string) (l line) {
	for _, name := range names {
		if p, ok := parsePlace(name); ok {
			l.places = append(l.places, p)
		} else if found := formatOf(name); found > format {
			l.newest = max(l.newest, found)
		}
		l.phase = l.phase || name == phaseName
	}
	// The numbers wrap around: after the largest comes the smallest.
	slices.SortFunc(l.places, func(a, b place) int { return cmp.Compare(a.number-b.number, 0) })
	return l
}

// index returns the index of the node with this name, -1 if there is none.
func (l line) index(name string) int {
	return slices.IndexFunc(l.places, func(p place) bool { return p.name == name })
}

// find returns the index of the claim with this public id, -1 if there is none.
func (l line) find(id string) int {
	return slices.IndexFunc(l.places, func(p place) bool { return p.id == id })
}

// readers reports whether a reader may hold, or join other readers, before the named
// node.
func (l line) readers(name string) bool {
	before := l.places[:max(l.index(name), 0)]
	return l.phase || slices.ContainsFunc(before, place.shared)
}

// with returns the queue with an additional claim at the end.
func (l line) with(c driver.Claim) line {
	l.places = append(slices.Clone(l.places), place{weight: c.Weight, limit: c.Limit})
	return l
}

// granted returns how many claims hold: the claims from the front that fit beside the
// claims ahead of them. A claim that does not fit stops every claim behind.
func (l line) granted() int {
	var weight int64
	for i, p := range l.places {
		weight += p.weight
		if weight > p.limit {
			return i
		}
	}
	return len(l.places)
}

// blockers returns the claims to watch for the claim at index at, or nil if the claim
// holds. At least one of the blockers must go before the claim can hold. There are as
// few blockers as possible, so waiters do not wake in vain.
func (l line) blockers(at int) []place {
	if l.granted() > at {
		return nil
	}
	before := make([]int64, at+1) // the weight ahead of each claim
	for i := range at {
		before[i+1] = before[i] + l.places[i].weight
	}
	for i := at; i >= 0; i-- {
		p := l.places[i]
		excess := before[i] + p.weight - p.limit
		if excess <= 0 {
			continue
		}
		if i == at {
			return l.enough(i, excess)
		}
		return append(l.enough(i, excess), p) // or p gives up
	}
	return nil
}

// enough returns claims ahead of a place. At least one of the returned claims must go
// to free the excess. Omitted are claims, from the front, with a combined weight below
// the excess.
func (l line) enough(at int, excess int64) []place {
	var passed int64
	var watched []place
	for _, p := range l.places[:at] {
		if passed+p.weight < excess {
			passed += p.weight
		} else {
			watched = append(watched, p)
		}
	}
	return watched
}
