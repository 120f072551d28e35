package oncetest

import "github.com/holdfast-go/holdfast/once"

var forgetRules = []rule{
	{"forget/begun", "Forget of a begun record leaves the token, and the next owner may begin with a new fingerprint.", func(e *env) {
		e.begin(7, "print", long)
		e.forget(7)
		e.begin(8, "other", long)
	}},
	{"forget/done", "Forget of a done record leaves the token, and the next owner may begin.", func(e *env) {
		e.begin(7, "print", long)
		e.finish(7, "print", "result", long)
		e.forget(8)
		e.begin(9, "other", long)
		e.finish(9, "other", "", long)
	}},
	{"forget/twice-is-once", "A second Forget changes nothing.", func(e *env) {
		e.begin(7, "", long)
		e.forget(7)
		e.forget(7)
	}},
	{"forget/fences", "A forgotten record refuses smaller tokens.", func(e *env) {
		e.begin(7, "", long)
		e.forget(8)
		_, err := e.client().Begin(e.Context(), e.key, 7, "", long)
		e.outdated("Begin", 7, once.Record{Token: 8}, err)
		e.begin(8, "", long)
	}},
	{"forget/former-owner", "A Forget with a token below the stored token is refused, and changes nothing.", func(e *env) {
		e.begin(8, "print", long)
		e.outdated("Forget", 7, once.Record{State: once.Begun, Token: 8, Fingerprint: "print"}, e.client().Forget(e.Context(), e.key, 7))
		e.finish(8, "print", "result", long)
		done := once.Record{State: once.Done, Token: 8, Fingerprint: "print", Result: []byte("result")}
		e.outdated("Forget", 7, done, e.client().Forget(e.Context(), e.key, 7))
		e.forget(9)
		e.outdated("Forget", 8, once.Record{Token: 9}, e.client().Forget(e.Context(), e.key, 8))
	}},
	{"forget/nothing", "Forget makes no record for a key without a record.", func(e *env) {
		e.succeeds("Forget", e.client().Forget(e.Context(), e.key, 7))
		e.stands(once.Record{})
		e.begin(6, "", long)
	}},
}
