package oncetest

import "github.com/holdfast-go/holdfast/once"

var beginRules = []rule{
	{"load/nothing", "Load returns the zero Record for a key of which nothing is remembered.", func(e *env) {
		e.stands(once.Record{})
	}},
	{"begin/remembers", "Begin remembers token and fingerprint, for all clients.", func(e *env) {
		e.begin(7, "print \x00\xff", long)
	}},
	{"begin/twice-is-once", "Begin with the same token and fingerprint again returns the same.", func(e *env) {
		for range 3 {
			e.begin(7, "print", long)
		}
	}},
	{"begin/later-owner", "A larger token takes over what was begun.", func(e *env) {
		e.begin(7, "print", long)
		e.begin(8, "print", long)
		e.begin(1<<53-2, "print", long)
		e.begin(1<<53-1, "print", long)
	}},
	{"begin/former-owner", "Begin with a smaller token than the one remembered is refused, and changes nothing.", func(e *env) {
		for _, highest := range []uint64{8, 10, 1<<53 - 1} {
			e.begin(highest, "print", long)
			for _, fingerprint := range []string{"print", "other"} {
				_, err := e.client().Begin(e.Context(), e.key, highest-1, fingerprint, long)
				e.outdated("Begin", highest-1, once.Record{State: once.Begun, Token: highest, Fingerprint: "print"}, err)
			}
		}
	}},
	{"begin/fingerprint", "Begin leaves what was begun with another fingerprint, and returns it.", func(e *env) {
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
	{"begin/done", "Begin returns what is done, to any token and fingerprint, and leaves it.", func(e *env) {
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
