package oncetest

import (
	"strings"

	"github.com/holdfast-go/holdfast/once"
)

var finishRules = []rule{
	{"finish/remembers", "Finish stores the result of the owner that has begun, visible to every client.", func(e *env) {
		e.begin(7, "print", long)
		e.finish(7, "print", "result", long)
	}},
	{"finish/any-bytes", "A result is a sequence of bytes, up to 1 MiB, or empty.", func(e *env) {
		every := make([]byte, 256)
		for i := range every {
			every[i] = byte(i)
		}
		for name, result := range map[string]string{"none": "", "every": string(every), "large": strings.Repeat("\xff'\x00\\", once.MaxResult/4)} {
			one := e.on(e.key + name)
			one.begin(7, "", long)
			one.finish(7, "", result, long)
		}
	}},
	{"finish/twice-is-once", "A second Finish with the same token changes nothing.", func(e *env) {
		e.begin(7, "print", long)
		e.finish(7, "print", "first", long)
		e.succeeds("Finish again", e.client().Finish(e.Context(), e.key, 7, []byte("second"), short))
		e.awhile(short)
		e.stands(once.Record{State: once.Done, Token: 7, Fingerprint: "print", Result: []byte("first")})
	}},
	{"finish/former-owner", "Finish is refused once a larger token has begun, and changes nothing.", func(e *env) {
		e.begin(7, "", long)
		e.begin(8, "", long)
		begun := once.Record{State: once.Begun, Token: 8}
		e.outdated("Finish", 7, begun, e.client().Finish(e.Context(), e.key, 7, []byte("late"), long))
		e.finish(8, "", "right", long)
		done := once.Record{State: once.Done, Token: 8, Result: []byte("right")}
		e.outdated("Finish", 7, done, e.client().Finish(e.Context(), e.key, 7, []byte("late"), long))
	}},
	{"finish/not-begun", "Finish without a Begin of the same token is refused, and makes no record.", func(e *env) {
		e.unbegun(7, once.Record{})
		e.begin(7, "", long)
		e.unbegun(8, once.Record{State: once.Begun, Token: 7})
		e.finish(7, "", "right", long)
		e.unbegun(8, once.Record{State: once.Done, Token: 7, Result: []byte("right")})
	}},
	{"finish/forgotten", "Finish of a forgotten record is refused.", func(e *env) {
		e.begin(7, "", long)
		e.forget(7)
		e.unbegun(7, once.Record{Token: 7})
		e.forget(8)
		e.outdated("Finish", 7, once.Record{Token: 8}, e.client().Finish(e.Context(), e.key, 7, nil, long))
	}},
	{"finish/own-memory", "A result shares no memory with the result of the caller, or of a second call.", func(e *env) {
		e.begin(7, "", long)
		result := []byte("result")
		e.succeeds("Finish", e.client().Finish(e.Context(), e.key, 7, result, long))
		clear(result)
		for range e.clients {
			clear(e.load().Result)
		}
		r, err := e.client().Begin(e.Context(), e.key, 8, "", long)
		e.succeeds("Begin", err)
		clear(r.Result)
		for range e.clients {
			e.stands(once.Record{State: once.Done, Token: 7, Result: []byte("result")})
		}
	}},
}
