package oncetest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/once"
)

var errReset = errors.New("connection reset")

var mutants = []mutant{
	{"fail for a key of which nothing is remembered", "load/nothing", func(w *ways) {
		w.load = func(key string) (once.Record, error) {
			if r := w.now(key); r.Token != 0 {
				return r, nil
			}
			return once.Record{}, errReset
		}
	}},
	{"drop the fingerprint", "begin/remembers", func(w *ways) { w.begins(func(c *beginCall) { c.fingerprint = "" }) }},
	{"have records of their own in each client", "begin/remembers", func(w *ways) { *w = *newWays(&once.Memory{}) }},
	{"refuse who has begun already", "begin/twice-is-once", func(w *ways) {
		begin := w.begin
		w.begin = func(key string, token uint64, fingerprint string, keep time.Duration) (once.Record, error) {
			if r := w.now(key); r.Token == token {
				return r, w.refused(key)
			}
			return begin(key, token, fingerprint, keep)
		}
	}},
	{"leave what was begun to its owner", "begin/later-owner", func(w *ways) {
		begin := w.begin
		w.begin = func(key string, token uint64, fingerprint string, keep time.Duration) (once.Record, error) {
			if r := w.now(key); r.State == once.Begun {
				return r, nil
			}
			return begin(key, token, fingerprint, keep)
		}
	}},
	{"let former owners begin", "begin/former-owner", func(w *ways) { w.begins(func(c *beginCall) { c.token = max(c.token, w.now(c.key).Token) }) }},
	{"compare tokens as texts", "begin/former-owner", func(w *ways) {
		w.begins(func(c *beginCall) {
			if c.token == 9 && w.now(c.key).Token == 10 {
				c.token = 11
			}
		})
	}},
	{"overwrite another fingerprint", "begin/fingerprint", func(w *ways) {
		w.begins(func(c *beginCall) {
			if r := w.now(c.key); r.State == once.Begun {
				_ = w.forget(c.key, c.token)
			}
		})
	}},
	{"compare fingerprints without case", "begin/fingerprint", func(w *ways) {
		w.begins(func(c *beginCall) { c.fingerprint = strings.ToLower(c.fingerprint) })
	}},
	{"begin what is done", "begin/done", func(w *ways) {
		w.begins(func(c *beginCall) { _ = w.forget(c.key, c.token) })
	}},
	{"do not remember a result", "finish/remembers", func(w *ways) {
		w.finish = func(string, uint64, []byte, time.Duration) error { return nil }
	}},
	{"keep a result of text only", "finish/any-bytes", func(w *ways) {
		finish := w.finish
		w.finish = func(key string, token uint64, result []byte, keep time.Duration) error {
			return finish(key, token, []byte(strings.ToValidUTF8(string(result), "?")), keep)
		}
	}},
	{"overwrite a result", "finish/twice-is-once", func(w *ways) {
		finish := w.finish
		w.finish = func(key string, token uint64, result []byte, keep time.Duration) error {
			if r := w.now(key); r.State == once.Done && r.Token == token {
				r.Result = result
				w.write(key, r, keep)
				return nil
			}
			return finish(key, token, result, keep)
		}
	}},
	{"let former owners finish", "finish/former-owner", func(w *ways) {
		finish := w.finish
		w.finish = func(key string, token uint64, result []byte, keep time.Duration) error {
			return finish(key, max(token, w.now(key).Token), result, keep)
		}
	}},
	{"make a result that nobody has begun", "finish/not-begun", func(w *ways) {
		finish := w.finish
		w.finish = func(key string, token uint64, result []byte, keep time.Duration) error {
			if w.now(key).Token < token {
				_, _ = w.begin(key, token, w.now(key).Fingerprint, keep)
			}
			return finish(key, token, result, keep)
		}
	}},
	{"finish what was forgotten", "finish/forgotten", func(w *ways) {
		finish := w.finish
		w.finish = func(key string, token uint64, result []byte, keep time.Duration) error {
			if r := w.now(key); r.State == once.Free && r.Token == token {
				w.write(key, once.Record{State: once.Begun, Token: token}, keep)
			}
			return finish(key, token, result, keep)
		}
	}},
	{"hand out what they keep", "finish/own-memory", func(w *ways) {
		var kept []byte
		finish := w.finish
		w.finish = func(key string, token uint64, result []byte, keep time.Duration) error {
			kept = result
			return finish(key, token, result, keep)
		}
		load := w.load
		w.load = func(key string) (once.Record, error) {
			r, err := load(key)
			if kept != nil {
				r.Result = kept
			}
			return r, err
		}
	}},
	{"forget the token too", "forget/begun", func(w *ways) { w.loads(func(r *once.Record) { r.Token *= uint64(min(r.State, 1)) }) }},
	{"forget nothing that is done", "forget/done", func(w *ways) {
		forget := w.forget
		w.forget = func(key string, token uint64) error {
			if r := w.now(key); r.State == once.Done {
				return nil
			}
			return forget(key, token)
		}
	}},
	{"refuse to forget again", "forget/twice-is-once", func(w *ways) {
		forget := w.forget
		w.forget = func(key string, token uint64) error {
			if r := w.now(key); same(r, once.Record{Token: token}) {
				return errReset
			}
			return forget(key, token)
		}
	}},
	{"let former owners begin what was forgotten", "forget/fences", func(w *ways) {
		w.begins(func(c *beginCall) {
			if r := w.now(c.key); r.State == once.Free {
				c.token = max(c.token, r.Token)
			}
		})
	}},
	{"let former owners forget", "forget/former-owner", func(w *ways) {
		forget := w.forget
		w.forget = func(key string, token uint64) error { return forget(key, max(token, w.now(key).Token)) }
	}},
	{"make a record to forget", "forget/nothing", func(w *ways) {
		forget := w.forget
		w.forget = func(key string, token uint64) error {
			_, _ = w.begin(key, token, "", long)
			return forget(key, token)
		}
	}},
	{"keep what was begun without end", "time/begun", func(w *ways) {
		w.begins(func(c *beginCall) {
			if !strings.HasSuffix(c.key, "/awhile") {
				c.keep = long
			}
		})
	}},
	{"count the time from the first Begin", "time/begun-again", func(w *ways) {
		w.begins(func(c *beginCall) {
			if w.now(c.key).State == once.Begun {
				c.keep = short
			}
		})
	}},
	{"keep a result without end", "time/done", func(w *ways) {
		finish := w.finish
		w.finish = func(key string, token uint64, result []byte, _ time.Duration) error {
			return finish(key, token, result, long)
		}
	}},
	{"count the time of a result from Begin", "time/done", func(w *ways) {
		finish := w.finish
		w.finish = func(key string, token uint64, result []byte, keep time.Duration) error {
			return finish(key, token, result, min(keep, short))
		}
	}},
	{"forget what was forgotten at once", "time/forgotten", func(w *ways) {
		w.forget = func(key string, token uint64) error {
			w.write(key, once.Record{State: once.Begun, Token: token}, short)
			return w.right.Forget(context.Background(), key, token)
		}
	}},
	{"keep longer what they leave", "time/left-alone", func(w *ways) {
		w.begins(func(c *beginCall) {
			if r := w.now(c.key); r.State == once.Begun && r.Fingerprint != c.fingerprint {
				w.write(c.key, r, c.keep)
			}
		})
	}},
	{"take upper and lower case for the same", "keys/apart", func(w *ways) { w.names(strings.ToLower) }},
	{"cut what is long", "keys/longest", func(w *ways) { w.names(func(key string) string { return key[:min(len(key), 255)] }) }},
	{"hide the error of the context", "context/ended", func(w *ways) { w.ended = errReset }},
	{"lose every second result", "history/random", func(w *ways) {
		finish, calls := w.finish, 0
		w.finish = func(key string, token uint64, result []byte, keep time.Duration) error {
			if r := w.now(key); r.State == once.Begun && r.Token == token {
				if calls++; calls%2 == 0 {
					return nil
				}
			}
			return finish(key, token, result, keep)
		}
	}},
	{"look and then write", "together/one-result", func(w *ways) {
		finish := w.finish
		w.finish = func(key string, token uint64, result []byte, keep time.Duration) error {
			if r := w.now(key); r.State == once.Begun && r.Token == token {
				time.Sleep(time.Millisecond)
				w.write(key, once.Record{State: once.Done, Token: 1 << 53, Result: result}, keep)
				return nil
			}
			return finish(key, token, result, keep)
		}
	}},
}

// A beginCall is what a Begin is given.
type beginCall struct {
	key         string
	token       uint64
	fingerprint string
	keep        time.Duration
}

// begins adds what goes wrong before a Begin.
func (w *ways) begins(spoil func(*beginCall)) {
	begin := w.begin
	w.begin = func(key string, token uint64, fingerprint string, keep time.Duration) (once.Record, error) {
		c := beginCall{key, token, fingerprint, keep}
		spoil(&c)
		return begin(c.key, c.token, c.fingerprint, c.keep)
	}
}

// loads adds what goes wrong after a Load.
func (w *ways) loads(spoil func(*once.Record)) {
	load := w.load
	w.load = func(key string) (once.Record, error) {
		r, err := load(key)
		spoil(&r)
		return r, err
	}
}

// names takes other keys for the keys.
func (w *ways) names(name func(string) string) {
	load, begin, finish, forget := w.load, w.begin, w.finish, w.forget
	w.load = func(key string) (once.Record, error) { return load(name(key)) }
	w.begin = func(key string, token uint64, fingerprint string, keep time.Duration) (once.Record, error) {
		return begin(name(key), token, fingerprint, keep)
	}
	w.finish = func(key string, token uint64, result []byte, keep time.Duration) error {
		return finish(name(key), token, result, keep)
	}
	w.forget = func(key string, token uint64) error { return forget(name(key), token) }
}
