package oncetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/sim"
	"github.com/holdfast-go/holdfast/once"
)

var historyRules = []rule{
	{"history/random", "For every sequence of calls, the records answer like the model.", func(e *env) {
		random := rand.New(rand.NewPCG(sim.Seed(e), 0))
		models := map[string]once.Record{}
		for step := range 400 {
			one := e.on(fmt.Sprint(e.key, "/", random.IntN(3)))
			before := models[one.key]
			after, problem := one.step(random, before)
			if problem != "" {
				e.failf("step %d, of a record that is %s: %s", step, show(before), problem)
			}
			models[one.key] = after
		}
		for key, want := range models {
			e.on(key).stands(want)
		}
	}},
	{"together/one-result", "If many owners begin and finish at once, every result is the same, and belongs to an owner that no later owner had followed.", func(e *env) {
		random := rand.New(rand.NewPCG(sim.Seed(e), 0))
		for round := range 20 {
			e.on(fmt.Sprint(e.key, "/", round)).together(random)
		}
	}},
}

// step makes a random call. It returns the record of the model after the call, and a
// description of a wrong answer.
func (e *env) step(random *rand.Rand, r once.Record) (after once.Record, problem string) {
	token := max(r.Token+uint64(random.IntN(4)), 2) - 1
	fingerprint := []string{"", "print"}[random.IntN(2)]
	result := fmt.Append(nil, "result ", random.IntN(1000))
	switch random.IntN(6) {
	case 0:
		if got := e.load(); !same(got, r) {
			return r, "Load returns " + show(got)
		}
		return r, ""
	case 1:
		err := e.client().Forget(e.Context(), e.key, token)
		return judge(r, "Forget", token, err, r.Token > token, func() once.Record {
			if r.Token == 0 {
				return r
			}
			return once.Record{Token: token}
		})
	case 2, 3:
		err := e.client().Finish(e.Context(), e.key, token, result, long)
		return judge(r, "Finish", token, err, r.Token != token || r.State == once.Free, func() once.Record {
			if r.State == once.Begun {
				return once.Record{State: once.Done, Token: token, Fingerprint: r.Fingerprint, Result: result}
			}
			return r
		})
	}
	got, err := e.client().Begin(e.Context(), e.key, token, fingerprint, long)
	after, problem = judge(r, "Begin", token, err, r.State != once.Done && r.Token > token, func() once.Record {
		if r.State == once.Done || r.State == once.Begun && r.Fingerprint != fingerprint {
			return r
		}
		return once.Record{State: once.Begun, Token: token, Fingerprint: fingerprint}
	})
	if problem == "" && err == nil && !same(got, after) {
		problem = fmt.Sprintf("Begin with token %d and %q returns %s, want %s", token, fingerprint, show(got), show(after))
	}
	return after, problem
}

// judge returns the record of the model after a call, and a description of a wrong error.
func judge(r once.Record, what string, token uint64, err error, refused bool, change func() once.Record) (after once.Record, problem string) {
	switch {
	case refused && !errors.Is(err, fence.ErrOutdated):
		return r, fmt.Sprintf("%s with token %d says %v, want ErrOutdated", what, token, err)
	case refused:
		return r, ""
	case err != nil:
		return r, fmt.Sprintf("%s with token %d fails: %v", what, token, err)
	}
	return change(), ""
}

// An owner begins and finishes. The fields began and finishing order the events by a
// count.
type owner struct {
	token             uint64
	began, finishing  int64 // 0: not yet
	result            string
	beginErr, lastErr error
}

// together lets owners begin and finish concurrently, and checks the outcome.
func (e *env) together(random *rand.Rand) {
	owners := make([]owner, 8)
	var count atomic.Int64
	var all sync.WaitGroup
	for i, order := range random.Perm(len(owners)) {
		o := &owners[i]
		o.token = uint64(order) + 1
		client := e.client()
		all.Go(func() { e.own(o, client, &count) })
	}
	all.Wait()
	final := e.load()
	for _, o := range owners {
		for _, err := range []error{o.beginErr, o.lastErr} {
			if err != nil && !errors.Is(err, fence.ErrOutdated) {
				e.failf("token %d: %v", o.token, err)
			}
		}
		if o.result != "" && o.result != string(final.Result) {
			e.failf("token %d has result %q, but it is %q", o.token, o.result, final.Result)
		}
		for _, later := range owners {
			if o.finishing > 0 && o.lastErr == nil && later.token > o.token && later.began > 0 && later.began < o.finishing {
				e.failf("token %d has finished, although %d had begun before that", o.token, later.token)
			}
		}
	}
	if final.State != once.Done {
		e.failf("all have ended, and the record is %s", show(final))
	}
}

// own calls Begin and then Finish for an owner.
func (e *env) own(o *owner, client once.Records, count *atomic.Int64) {
	r, err := client.Begin(e.Context(), e.key, o.token, "", long)
	o.beginErr = err
	switch {
	case err != nil:
		return
	case r.State == once.Done:
		o.result = string(r.Result)
		return
	}
	o.began = count.Add(1)
	o.finishing = count.Add(1)
	result := fmt.Sprint("of ", o.token)
	if o.lastErr = client.Finish(e.Context(), e.key, o.token, []byte(result), long); o.lastErr == nil {
		o.result = result
	}
}
