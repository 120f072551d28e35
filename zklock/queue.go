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
func (p place) shared() bool    { return driver.Claim{Weight: p.weight, Limit: p.limit}.Shared() }

// A queue is the claims on a key, in FIFO order.
type queue struct {
	places []place
	phase  bool  // there is a phase of readers
	newest int64 // the largest format of a claim, if larger than format
}

// unread returns why the queue of a key cannot be read.
func (q queue) unread(key string) error {
	return newer.Check(key, max(q.newest, format), format, newer.Passes)
}

// parseLine reads the names of all nodes of a key.
func parseQueue(names []string) (q queue) {
	for _, name := range names {
		if p, ok := parsePlace(name); ok {
			q.places = append(q.places, p)
		} else if found := formatOf(name); found > format {
			q.newest = max(q.newest, found)
		}
		q.phase = q.phase || name == phaseName
	}
	// The numbers wrap around: after the largest comes the smallest.
	slices.SortFunc(q.places, func(a, b place) int { return cmp.Compare(a.number-b.number, 0) })
	return q
}

// index returns the index of the node with this name, -1 if there is none.
func (q queue) index(name string) int {
	return slices.IndexFunc(q.places, func(p place) bool { return p.name == name })
}

// find returns the index of the claim with this public id, -1 if there is none.
func (q queue) find(id string) int {
	return slices.IndexFunc(q.places, func(p place) bool { return p.id == id })
}

// readers reports whether a reader may hold, or join other readers, before the named
// node.
func (q queue) readers(name string) bool {
	before := q.places[:max(q.index(name), 0)]
	return q.phase || slices.ContainsFunc(before, place.shared)
}

// with returns the queue with an additional claim at the end.
func (q queue) with(c driver.Claim) queue {
	q.places = append(slices.Clone(q.places), place{weight: c.Weight, limit: c.Limit})
	return q
}

// granted returns how many claims hold: the claims from the front that fit beside the
// claims ahead of them. A claim that does not fit stops every claim behind.
func (q queue) granted() int {
	var weight int64
	for i, p := range q.places {
		weight += p.weight
		if weight > p.limit {
			return i
		}
	}
	return len(q.places)
}

// blockers returns the claims to watch for the claim at index at, or nil if the claim
// holds. At least one of the blockers must go before the claim can hold. There are as
// few blockers as possible, so waiters do not wake in vain.
func (q queue) blockers(at int) []place {
	if q.granted() > at {
		return nil
	}
	before := make([]int64, at+1) // the weight ahead of each claim
	for i := range at {
		before[i+1] = before[i] + q.places[i].weight
	}
	for i := at; i >= 0; i-- {
		p := q.places[i]
		excess := before[i] + p.weight - p.limit
		if excess <= 0 {
			continue
		}
		if i == at {
			return q.enough(i, excess)
		}
		return append(q.enough(i, excess), p) // or p gives up
	}
	return nil
}

// enough returns claims ahead of a place. At least one of the returned claims must go
// to free the excess. Omitted are claims, from the front, with a combined weight below
// the excess.
func (q queue) enough(at int, excess int64) []place {
	var passed int64
	var watched []place
	for _, p := range q.places[:at] {
		if passed+p.weight < excess {
			passed += p.weight
		} else {
			watched = append(watched, p)
		}
	}
	return watched
}
