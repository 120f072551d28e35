package zklock

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// A place is the node of a claim among those of its key. Its name says all that
// the others must know of it.
type place struct {
	name          string
	weight, limit int64
	id            string // public
	number        int32
}

// placeName is what the name of a claim's node begins with. The server adds the
// number.
func placeName(c driver.Claim) string {
	return fmt.Sprintf("%x-%x-%s-", c.Weight, c.Limit, driver.PublicID(c.ID))
}

// parsePlace reads the name of a node, false if it is none of a claim.
func parsePlace(name string) (p place, ok bool) {
	parts := strings.SplitN(name, "-", 4)
	if len(parts) != 4 {
		return p, false
	}
	weight, err1 := strconv.ParseInt(parts[0], 16, 64)
	limit, err2 := strconv.ParseInt(parts[1], 16, 64)
	number, err3 := strconv.ParseInt(parts[3], 10, 32)
	ok = err1 == nil && err2 == nil && err3 == nil && 1 <= weight && weight <= limit && limit <= driver.MaxWeight
	return place{name, weight, limit, parts[2], int32(number)}, ok
}

func (p place) exclusive() bool { return p.weight == driver.MaxWeight }
func (p place) shared() bool    { return p.limit == driver.MaxWeight && p.weight < driver.MaxWeight }

// A line is the claims on a key in the order in which they came.
type line struct {
	places []place
	phase  bool // there is a phase of readers
}

// parseLine reads the names of all nodes of a key.
func parseLine(names []string) (l line) {
	for _, name := range names {
		if p, ok := parsePlace(name); ok {
			l.places = append(l.places, p)
		}
		l.phase = l.phase || name == phaseName
	}
	// The numbers go round: after the largest comes the smallest.
	slices.SortFunc(l.places, func(a, b place) int { return cmp.Compare(a.number-b.number, 0) })
	return l
}

// index returns where the node of this name is, -1 if it is not.
func (l line) index(name string) int {
	return slices.IndexFunc(l.places, func(p place) bool { return p.name == name })
}

// find returns where the claim with this public id is, -1 if it is not.
func (l line) find(id string) int {
	return slices.IndexFunc(l.places, func(p place) bool { return p.id == id })
}

// readers reports whether a reader may hold, or join others, before the node of
// this name.
func (l line) readers(name string) bool {
	before := l.places[:max(l.index(name), 0)]
	return l.phase || slices.ContainsFunc(before, place.shared)
}

// with returns the line as it would be if a claim came.
func (l line) with(c driver.Claim) line {
	l.places = append(slices.Clone(l.places), place{weight: c.Weight, limit: c.Limit})
	return l
}

// granted returns how many claims hold: those from the first on that fit beside
// the ones before them. Whoever does not fit stops all that come after.
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

// blockers returns claims of which one at least must go before the one at this
// place holds; none if it holds. They are as few as can be: a herd does not wake
// for what does not help it.
func (l line) blockers(at int) []place {
	if l.granted() > at {
		return nil
	}
	before := make([]int64, at+1) // the weight before each
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
		return append(l.enough(i, excess), p) // or it gives up itself
	}
	return nil
}

// enough returns the claims before a place without the first of them, of which
// all could go and there would still not be so much room.
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
