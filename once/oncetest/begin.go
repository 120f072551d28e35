package oncetest

import "github.com/holdfast-go/holdfast/once"

var beginRules = []rule{
	{"load/nothing", "Load returns the zero Record for a key without a record.", func(e *env) {
		e.stands(once.Record{})
	}},
	{"begin/remembers", "Begin stores the token and the fingerprint, visible to every client.", func(e *env) {
		e.begin(7, "print \x00\xff", long)
	}},
	{"begin/twice-is-once", "A second Begin with the same token and fingerprint returns the same record.", func(e *env) {
		for range 3 {
			e.begin(7, "print", long)
		}
	}},
	{"begin/later-owner", "A Begin with a larger token takes over a begun record.", func(e *env) {
		e.begin(7, "print", long)
		e.begin(8, "print", long)
		e.begin(1<<53-2, "print", long)
		e.begin(1<<53-1, "print", long)
	}},
	{"begin/former-owner", "A Begin with a token below the stored token is refused, and changes nothing.", func(e *env) {
		for _, highest := range []uint64{8, 10, 1<<53 - 1} {
			e.begin(highest, "print", long)
			for _, fingerprint := range []string{"print", "other"} {
				_, err := e.client().Begin(e.Context(), e.key, highest-1, fingerprint, long)
				e.outdated("Begin", highest-1, once.Record{State: once.Begun, Token: highest, Fingerprint: "print"}, err)
			}
		}
	}},
	{"begin/fingerprint", "Begin leaves a begun record with a different fingerprint unchanged, and returns the record.", func(e *env) {
		e.begin(7, "print", long)
		begun := once.Record{State: once.Begun, Token: 7, Fingerprint: "print"}
		for _, fingerprint := range []string{"", "other", "PRINT", "print "} {
			for _, token := range []uint64{7, 8} {
				e.begins(token, fingerprint, long, begun)
				e.stands(begun)
			}
		}
		e.begin(8, "print", long)
	}},
	{"begin/done", "Begin returns a done record for every token and fingerprint, and leaves the record unchanged.", func(e *env) {
		e.begin(7, "print", long)
		e.finish(7, "print", "result", long)
		done := once.Record{State: once.Done, Token: 7, Fingerprint: "print", Result: []byte("result")}
		for _, token := range []uint64{6, 7, 8} {
			for _, fingerprint := range []string{"print", "other"} {
				e.begins(token, fingerprint, long, done)
				e.stands(done)
			}
		}
	}},
}
