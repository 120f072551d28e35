package engine

import "context"

// A Bond ends a context when a hold ends. The caller provides the memory.
type Bond struct {
	context.Context
	Cancel context.CancelCauseFunc
	Cause  error // of the context, once the hold has ended

	next *Bond
}

func (b *Bond) end() { b.Cancel(b.Cause) }

// The bonds of a hold are its contexts. Contexts that ended before the hold are removed when
// more contexts are added, and when the lease is renewed. Removing costs less than watching
// every context.
type bonds struct {
	last  *Bond // the newest; next leads to the first
	count int32
	most  int32 // count at which ended contexts are looked for
}

func (bs *bonds) add(b *Bond) {
	if bs.count >= bs.most {
		bs.forgetEnded()
		bs.most = 2*bs.count + 1
	}
	b.next, bs.last = bs.last, b
	bs.count++
}

func (bs *bonds) forgetEnded() {
	at := &bs.last
	for *at != nil {
		if (*at).Err() == nil {
			at = &(*at).next
			continue
		}
		*at = (*at).next
		bs.count--
	}
}

func (bs bonds) end() {
	for b := bs.last; b != nil; b = b.next {
		b.end()
	}
}
