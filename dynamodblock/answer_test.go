package dynamodblock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A write is not refused by an answer of success, although the client cannot read the answer.
func TestUnreadableSuccess(t *testing.T) {
	t.Parallel()
	for what, answer := range map[string]func(w http.ResponseWriter){
		"cut": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"Attributes":{`)
		},
		"no JSON":  func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") },
		"checksum": func(w http.ResponseWriter) { w.Header().Set("X-Amz-Crc32", "moon"); fmt.Fprint(w, "{}") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := &liar{}
			s := opened(t, l.start(t))
			l.mu.Lock()
			l.garble = answer
			l.mu.Unlock()
			if _, err := s.Acquire(t.Context(), ask("key", "id")); err == nil || errors.Is(err, driver.ErrUnwritten) || errors.Is(err, driver.ErrInvalid) {
				t.Errorf("%v, want an unknown outcome", err)
			}
			if g, err := s.Acquire(t.Context(), ask("key", "other")); err != nil || g.OK {
				t.Errorf("another claim is answered %+v, %v; want that the key is held", g, err)
			}
		})
	}
}

// The caller's context may end while the client reads an answer of success.
func TestContextEndsWithinTheAnswer(t *testing.T) {
	t.Parallel()
	l := &liar{}
	s := opened(t, l.start(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	returned := make(chan struct{})
	l.mu.Lock()
	l.garble = func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, `{"Attributes":{`)
		w.(http.Flusher).Flush()
		time.AfterFunc(50*time.Millisecond, cancel)
		<-returned // else the cut answer may come before the client sees that ctx has ended
	}
	l.mu.Unlock()
	_, err := s.Acquire(ctx, ask("key", "id"))
	close(returned)
	if !errors.Is(err, context.Canceled) || errors.Is(err, driver.ErrUnwritten) {
		t.Errorf("%v, want an unknown outcome and context.Canceled", err)
	}
}

// Services repeat the signed headers in the refusal of a signature. The token of a session is one
// of the headers.
func TestRefusedSignatureHidesTheToken(t *testing.T) {
	t.Parallel()
	l := &liar{}
	s := opened(t, l.start(t))
	var once atomic.Bool
	l.mu.Lock()
	l.answer = func(w http.ResponseWriter, action string) bool {
		if action != "PutItem" || once.Swap(true) {
			return false
		}
		w.WriteHeader(http.StatusBadRequest)
		say(w, map[string]any{
			"__type":  "com.amazon.coral.service#InvalidSignatureException",
			"message": "The signature does not match.\n\nThe Canonical String for this request should have been\n'POST\n/\n\nx-amz-security-token:moonlight\n'",
		})
		return true
	}
	l.mu.Unlock()
	_, err := s.Acquire(t.Context(), ask("key", "id"))
	if !errors.Is(err, driver.ErrUnwritten) || !strings.Contains(err.Error(), "The signature does not match.") || strings.Contains(err.Error(), "moonlight") {
		t.Errorf("%v, want the refusal without the token", err)
	}
}
