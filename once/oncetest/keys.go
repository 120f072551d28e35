package oncetest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/once"
)

var keyRules = []rule{
	{"keys/apart", "Every byte of a key counts, and different keys have separate records.", func(e *env) {
		base := e.key + " "
		keys := []string{"", " ", "a", "A", "a ", "a\x00", "a\x00b", "ä", "a\u0308", "🔒", "'", `"`, `\`, "%", "%61", "*", "{a}", "}{", "../a", "a/../a", "a:b", "\n"}
		for i, key := range keys {
			e.on(base+key).begin(uint64(100+i), fmt.Sprint("print ", i), long)
		}
		for i, key := range keys {
			e.on(base + key).stands(once.Record{State: once.Begun, Token: uint64(100 + i), Fingerprint: fmt.Sprint("print ", i)})
		}
		for i, key := range keys {
			if i%2 == 0 {
				e.on(base + key).forget(uint64(100 + i))
			} else {
				e.on(base+key).finish(uint64(100+i), fmt.Sprint("print ", i), fmt.Sprint("result ", i), long)
			}
		}
		for i, key := range keys {
			want := once.Record{Token: uint64(100 + i)}
			if i%2 != 0 {
				want = once.Record{State: once.Done, Token: uint64(100 + i), Fingerprint: fmt.Sprint("print ", i), Result: fmt.Append(nil, "result ", i)}
			}
			e.on(base + key).stands(want)
		}
	}},
	{"keys/longest", "Keys of 507 bytes and fingerprints of 256 bytes are kept whole.", func(e *env) {
		pad := strings.Repeat("k", once.MaxKey)
		one := e.on((e.key + pad)[:once.MaxKey-1] + "1")
		two := e.on((e.key + pad)[:once.MaxKey-1] + "2")
		whole := strings.Repeat("\xff", once.MaxFingerprint)
		one.begin(1, whole, long)
		two.stands(once.Record{})
		two.begin(2, whole[1:], long)
		one.finish(1, whole, "one", long)
		two.finish(2, whole[1:], "two", long)
	}},
	{"context/ended", "If a call whose context has ended fails, the error is the error of the context.", func(e *env) {
		e.begin(7, "", long)
		ctx, cancel := context.WithCancel(e.Context())
		cancel()
		_, loaded := e.client().Load(ctx, e.key)
		_, begun := e.client().Begin(ctx, e.key, 8, "", long)
		finished := e.client().Finish(ctx, e.key, 8, nil, long)
		forgotten := e.client().Forget(ctx, e.key, 9)
		for what, err := range map[string]error{"Load": loaded, "Begin": begun, "Forget": forgotten} {
			if err != nil && !errors.Is(err, context.Canceled) {
				e.failf("%s says %v", what, err)
			}
		}
		if begun != nil && finished == nil {
			e.failf("Begin says %v, and Finish nothing", begun)
		}
	}},
}
