package oncetest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/once"
)

var timeRules = []rule{
	{"time/begun", "A begun record stays until its time is over, and then nothing is left.", func(e *env) {
		e.begin(7, "print", long)
		e.awhile(short)
		e.stands(once.Record{State: once.Begun, Token: 7, Fingerprint: "print"})

		other := e.on(e.key + "/other")
		other.begins(7, "print", short, once.Record{State: once.Begun, Token: 7, Fingerprint: "print"})
		other.ends()
		other.unbegun(7, once.Record{})
		other.begin(6, "other", long)
	}},
	{"time/begun-again", "A second Begin counts the time of the record anew.", func(e *env) {
		e.begins(7, "", short, once.Record{State: once.Begun, Token: 7})
		e.begin(8, "", long)
		e.awhile(short)
		e.stands(once.Record{State: once.Begun, Token: 8})
	}},
	{"time/done", "The time of a result counts from Finish, and nothing is left when the time is over.", func(e *env) {
		e.quickly(func(e *env, keep time.Duration) bool {
			e.begins(7, "", keep, once.Record{State: once.Begun, Token: 7})
			if errors.Is(e.client().Finish(e.Context(), e.key, 7, nil, long), fence.ErrOutdated) {
				return false
			}
			e.awhile(keep)
			e.stands(once.Record{State: once.Done, Token: 7})
			return true
		})
		other := e.on(e.key + "/other")
		other.begin(7, "", long)
		e.succeeds("Finish", other.client().Finish(e.Context(), other.key, 7, []byte("result"), short))
		other.ends()
		other.begin(6, "", long)
		other.finish(6, "", "another", long)
	}},
	{"time/forgotten", "A forgotten record keeps the rest of its time.", func(e *env) {
		e.begin(7, "", long)
		e.forget(7)
		e.awhile(short)
		e.stands(once.Record{Token: 7})

		other := e.on(e.key + "/other")
		other.begins(7, "", short, once.Record{State: once.Begun, Token: 7})
		e.succeeds("Forget", other.client().Forget(e.Context(), other.key, 7))
		other.ends()
	}},
	{"time/left-alone", "A Begin that leaves a record unchanged leaves the time of the record unchanged, too.", func(e *env) {
		e.quickly(func(e *env, keep time.Duration) bool {
			begun := once.Record{State: once.Begun, Token: 7, Fingerprint: "print"}
			e.begins(7, "print", keep, begun)
			r, err := e.client().Begin(e.Context(), e.key, 7, "other", long)
			e.succeeds("Begin", err)
			if same(r, begun) {
				e.ends()
			}
			return same(r, begun)
		})
	}},
}

// quickly runs a check while its record has not expired. On a slow machine the check
// may be too late and returns false. quickly then retries with more time.
func (e *env) quickly(check func(e *env, keep time.Duration) bool) {
	for keep := short; !check(e.on(e.key+"/"+keep.String()), keep); keep *= 2 {
		if keep > patience {
			e.failf("what is kept for %v is not there right after it", keep)
		}
	}
}
