package httplock_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/internal/sim"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
)

// Many requests with few keys at several servers, whose handlers fail, panic and hang
// now and then: each key succeeds once, and all that are told so are told the same.
func TestOnceUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 20
		store, records := memlock.New(), new(once.Memory)
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(sim.Seed(t), 0))
		draw := func(n int64) int64 {
			mu.Lock()
			defer mu.Unlock()
			return random.Int64N(n)
		}
		var succeeded [keys]atomic.Int32
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var key int
			fmt.Sscan(r.URL.Query().Get("key"), &key)
			time.Sleep(time.Duration(draw(int64(2 * time.Second))))
			switch draw(6) {
			case 0:
				w.WriteHeader(http.StatusInternalServerError)
			case 1:
				panic(http.ErrAbortHandler)
			case 2:
				<-r.Context().Done() // held too long
				w.WriteHeader(http.StatusServiceUnavailable)
			default:
				w.WriteHeader(http.StatusCreated)
				fmt.Fprintf(w, "%d: %d", key, succeeded[key].Add(1))
			}
		})
		opts := &httplock.OnceOptions{
			Scope: httplock.Anyone,
			Lock:  []holdfast.LockOption{holdfast.Wait(5 * time.Second), holdfast.MaxHold(10 * time.Second)},
		}
		var all sync.WaitGroup
		var told atomic.Int32
		for range 4 { // servers
			h := httplock.Once(newLocks(t, shared{store}), records, opts)(handler)
			for i := range 200 {
				all.Go(func() {
					defer func() { recover() }()
					time.Sleep(time.Duration(draw(int64(5 * time.Minute))))
					r := submit(fmt.Sprint(i%keys), "tea")
					r.URL.RawQuery = fmt.Sprintf("key=%d", i%keys)
					w := serve(h, r)
					if w.Code == http.StatusCreated {
						told.Add(1)
						if want := fmt.Sprintf("%d: 1", i%keys); w.Body.String() != want {
							t.Errorf("told %q, want %q", w.Body, want)
						}
					}
				})
			}
		}
		all.Wait()
		for key := range succeeded {
			if n := succeeded[key].Load(); n != 1 {
				t.Errorf("key %d succeeded %d times", key, n)
			}
		}
		if told.Load() < keys {
			t.Errorf("%d of 800 requests were told of a success", told.Load())
		}
	})
}
