package redislock

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/newer"
)

// errReply is for answers that none of the scripts gives.
var errReply = errors.New("the reply is not what the script returns: has something changed its keys?")

// format is the version of a record: of the names of the fields of "held", and of the places
// in the queue. See lua/claim.lua.
const format = 1

// unknown reads the reply of a script that has met the record of a newer release.
func unknown(v any, key string) error {
	if n, ok := v.(int64); ok && n < 0 {
		return newer.Check(key, -n, format, newer.Passes)
	}
	return nil
}

// ints reads a reply that is a list of numbers.
func ints(v any) []int64 {
	list, _ := v.([]any)
	out := make([]int64, 0, len(list))
	for _, e := range list {
		n, ok := e.(int64)
		if !ok {
			return out
		}
		out = append(out, n)
	}
	return out
}

// granted reads the reply of acquire.
func granted(r Reply, a driver.Ask, n names) (driver.Grant, error) {
	if r.Err != nil {
		return driver.Grant{}, r.Err
	}
	if err := unknown(r.Value, a.Key); err != nil {
		return driver.Grant{}, err
	}
	if token, ok := r.Value.(int64); ok {
		return driver.Grant{OK: true, Fence: uint64(token), Span: span(a), TTL: a.TTL}, nil
	}
	of := ints(r.Value)
	switch {
	case len(of) == 4 && of[0] == 1:
		return driver.Grant{OK: true, Fence: uint64(of[1]), Span: int(of[2]), TTL: duration(of[3])}, nil
	case len(of) == 1 && of[0] == -1:
		return driver.Grant{}, outOfBounds(r, a.Key, a.Fence, n)
	case len(of) < 3 || of[0] != 0:
		return driver.Grant{}, errReply
	}
	g := driver.Grant{Floor: uint64(of[1]), Left: duration(of[2])}
	if list := r.Value.([]any); len(list) > 3 {
		holder, ok := holder(list[3:])
		if !ok {
			return driver.Grant{}, errReply
		}
		g.Holder = holder.Holder
	}
	return g, nil
}

// outOfBounds reads the reply {-1, value of floor}. fence is the least token that the call
// requested; 0 accepts every token.
func outOfBounds(r Reply, key string, fence uint64, n names) error {
	floor, value := n.floor(key), ""
	if list, ok := r.Value.([]any); ok && len(list) == 2 {
		value, _ = list[1].(string)
	}
	last, err := strconv.ParseUint(cmp.Or(value, "0"), 10, 64)
	switch {
	case err != nil || last >= 1<<53:
		return fmt.Errorf("%w: the Redis key %q, which keeps the highest fencing token given, is %q (want a whole number below 2^53 that is no smaller than any token given; if the server's clock was always right, its microseconds since 1970)", driver.ErrInvalid, floor, value)
	case fence > 0:
		return fmt.Errorf("%w: the token %d that is asked for is not below 2^53, or more than a day ahead of the server's clock and of the highest token given, %d in the Redis key %q; is a clock wrong?", driver.ErrInvalid, fence, last, floor)
	}
	return fmt.Errorf("%w: the highest fencing token given, %d in the Redis key %q, leaves too few below 2^53; is the server's clock right?", driver.ErrInvalid, last, floor)
}

// kept reads the reply of a script that returns 1 if the claim was there.
func kept(r Reply, key string) error {
	switch {
	case r.Err != nil:
		return r.Err
	case r.Value == int64(1):
		return nil
	case r.Value == int64(0):
		return driver.ErrLost
	}
	return cmp.Or(unknown(r.Value, key), errReply)
}

// renewed reads what the reply of renew, or of raise, says about its nth claim, r.
func renewed(reply Reply, nth int, r driver.Renewal, n names) error {
	list, _ := reply.Value.([]any)
	switch {
	case reply.Err != nil:
		return reply.Err
	case nth >= len(list):
		return errReply
	case list[nth] == int64(-1):
		return outOfBounds(reply, r.Key, r.Fence, n)
	}
	return kept(Reply{Value: list[nth]}, r.Key)
}

// A claim is a driver.Holder with the claim's id, which only the store may know.
type claim struct {
	driver.Holder
	id string
}

// holder reads {id, ends in, weight, limit, token, since, details}.
func holder(list []any) (c claim, ok bool) {
	if len(list) != 7 {
		return claim{}, false
	}
	id, ok1 := list[0].(string)
	text, ok2 := list[6].(string)
	d, ok3 := readDetails(text)
	n := ints(list[1:6])
	if !ok1 || !ok2 || !ok3 || len(n) != 5 {
		return claim{}, false
	}
	return claim{id: id, Holder: driver.Holder{
		ID: driver.PublicID(id), Owner: d.owner, Note: d.note,
		Left: duration(n[0]), Weight: n[1], Limit: n[2], Fence: uint64(n[3]),
		Since: time.UnixMicro(n[4]), Waiting: n[3] == 0,
	}}, true
}

// details are kept with a claim and not read by scripts.
type details struct{ client, owner, note string }

func (d details) String() string {
	return strconv.Itoa(len(d.client)) + ":" + strconv.Itoa(len(d.owner)) + ":" + d.client + d.owner + d.note
}

func readDetails(text string) (d details, ok bool) {
	client, rest, ok1 := strings.Cut(text, ":")
	owner, rest, ok2 := strings.Cut(rest, ":")
	n, err1 := strconv.Atoi(client)
	m, err2 := strconv.Atoi(owner)
	if !ok1 || !ok2 || err1 != nil || err2 != nil || n < 0 || m < 0 || n+m > len(rest) {
		return details{}, false
	}
	return details{rest[:n], rest[n : n+m], rest[n+m:]}, true
}

func duration(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
