package httplock_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/httplock"
)

func TestIdempotencyKey(t *testing.T) {
	for text, want := range map[string]string{
		`"8e03978e-40d5"`:                    "8e03978e-40d5",
		`8e03978e-40d5`:                      "8e03978e-40d5",
		`"a b"`:                              "a b",
		`"a\"b\\"`:                           `a"b\`,
		`"a";version=2`:                      "a",
		`"a" ;x`:                             "a",
		strings.Repeat("k", 255):             strings.Repeat("k", 255),
		strings.Repeat("k", 256):             "",
		`""`:                                 "",
		``:                                   "",
		`"`:                                  "",
		`"a`:                                 "",
		`a"`:                                 "",
		`"a" b`:                              "",
		`"a\b"`:                              "",
		`"a\`:                                "",
		`a b`:                                "",
		`"a", "b"`:                           "",
		`a;b`:                                "",
		"\"a\x00b\"":                         "",
		`"ä"`:                                "",
		`"` + strings.Repeat("k", 256) + `"`: "",
	} {
		r := newRequest("")
		r.Header.Set(httplock.IdempotencyHeader, text)
		got, err := httplock.IdempotencyKey(r)
		var problem *httplock.Problem
		if want != "" && (got != "idempotency/"+want || err != nil) || want == "" && (!errors.As(err, &problem) || problem.Status != http.StatusBadRequest) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	r := newRequest("")
	r.Header[httplock.IdempotencyHeader] = []string{"a", "a"}
	if _, err := httplock.IdempotencyKey(r); err == nil {
		t.Error("two headers were taken")
	}
	long := newOnce(t, httplock.OnceOptions{Key: order})(created)
	wantProblem(t, serve(long, newRequest(strings.Repeat("k", 500))), http.StatusBadRequest, "too long")
	wantProblem(t, serve(long, newRequest("\xff")), http.StatusBadRequest, "not UTF-8")
}

// A text quoted as in the draft comes back unchanged.
func FuzzIdempotencyKey(f *testing.F) {
	f.Add("8e03978e", `"8e03978e"`)
	f.Add(`a"\ b`, `"a";b="c"`)
	f.Fuzz(func(t *testing.T, key, header string) {
		r := newRequest("")
		r.Header.Set(httplock.IdempotencyHeader, header)
		if got, err := httplock.IdempotencyKey(r); (got == "") == (err == nil) {
			t.Errorf("%q: %q, %v; want one of both", header, got, err)
		}
		r.Header.Set(httplock.IdempotencyHeader, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key)+`"`)
		printable := !strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' })
		got, err := httplock.IdempotencyKey(r)
		if good := printable && len(key) >= 1 && len(key) <= 255; good != (err == nil) || good && got != "idempotency/"+key {
			t.Errorf("%q: %q, %v", key, got, err)
		}
	})
}
