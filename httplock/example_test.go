package httplock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
)

type sessionKey struct{}

// currentUser returns whom the session middleware has found, "" for nobody.
func currentUser(ctx context.Context) string {
	user, _ := ctx.Value(sessionKey{}).(string)
	return user
}

// signedIn is a session middleware.
func signedIn(user string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sessionKey{}, user)))
	})
}

func ExampleLocked() {
	locks, err := holdfast.New(memlock.New(), nil) // or holdfast.Open of your store
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	mux := http.NewServeMux()

	perAccount := httplock.Locked(locks, httplock.PathValue("id"), nil)
	mux.Handle("POST /accounts/{id}/withdraw", perAccount(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context() // ends if the lock is lost
		lock, _ := holdfast.FromContext(ctx)
		fmt.Fprintf(w, "nobody else withdraws from %s", lock.Key())
	})))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/accounts/42/withdraw", nil))
	fmt.Println(w.Code, w.Body)
	// Output: 200 nobody else withdraws from path/id/42
}

func ExampleLocked_options() {
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	perUser := httplock.Locked(locks, httplock.Join(httplock.User(currentUser), httplock.Route), &httplock.Options{
		Lock: []holdfast.LockOption{
			holdfast.Wait(2 * time.Second),    // then 409; without it, at once
			holdfast.MaxHold(5 * time.Minute), // for handlers that hang
		},
	})

	work := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock, _ := holdfast.FromContext(r.Context())
		fmt.Println(lock.Key())
	})
	signedIn("ann", perUser(work)).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/export", nil))
	// Output: user/ann|route/POST /export
}

func ExampleOnce() {
	locks, err := holdfast.New(memlock.New(), nil) // or those of your servers
	if err != nil {
		log.Fatal(err)
	}
	records := new(once.Memory)
	defer locks.Close()
	mux := http.NewServeMux()

	idempotent := httplock.Once(locks, records, &httplock.OnceOptions{
		Scope:     httplock.User(currentUser),
		Retention: 48 * time.Hour,
	})
	mux.Handle("POST /payments", idempotent(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("pay")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "payment 1")
	})))

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader("amount=100"))
		r.Header.Set("Idempotency-Key", `"8e03978e-40d5"`)
		w := httptest.NewRecorder()
		signedIn("ann", mux).ServeHTTP(w, r)
		fmt.Printf("%d %s %q\n", w.Code, w.Body, w.Header().Get(httplock.ReplayedHeader))
	}
	// Output:
	// pay
	// 201 payment 1 ""
	// 201 payment 1 "true"
}

// A form that is sent twice is taken once, if each form that is shown has a token of
// its own in a hidden field.
func ExampleOnce_form() {
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	records := new(once.Memory)
	defer locks.Close()

	onceEach := httplock.Once(locks, records, &httplock.OnceOptions{
		Key:   httplock.Required(httplock.Form("token"), "Load the form again."),
		Scope: httplock.Anyone, // nobody can guess the token of somebody else's form
		Lock:  []holdfast.LockOption{holdfast.Wait(10 * time.Second)},
	})
	orders := onceEach(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("order", r.FormValue("item"))
	}))

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("token=F3Q7&item=tea"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		orders.ServeHTTP(httptest.NewRecorder(), r)
	}
	// Output: order tea
}

// A payment goes on when its client leaves, and ends when its lock is lost.
func ExampleOnce_clientLeaves() {
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	records := new(once.Memory)
	defer locks.Close()
	client, leave := context.WithCancel(context.Background())
	charge := func(ctx context.Context) error {
		leave()
		fmt.Println("charge:", client.Err(), "at the client,", ctx.Err(), "here")
		return ctx.Err()
	}

	idempotent := httplock.Once(locks, records, &httplock.OnceOptions{Scope: httplock.User(currentUser)})
	payments := signedIn("ann", idempotent(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock, _ := holdfast.FromContext(r.Context())
		ctx := lock.Context(context.WithoutCancel(r.Context())) // ends with the lock only
		if err := charge(ctx); err != nil {
			http.Error(w, "not charged", http.StatusServiceUnavailable)
			return // after a bare return, repeats would be told 200
		}
	})))

	for _, ctx := range []context.Context{client, context.Background()} {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/payments", strings.NewReader("amount=100"))
		r.Header.Set("Idempotency-Key", `"8e03978e-40d5"`)
		w := httptest.NewRecorder()
		payments.ServeHTTP(w, r)
		fmt.Printf("%d %q\n", w.Code, w.Header().Get(httplock.ReplayedHeader))
	}
	// Output:
	// charge: context canceled at the client, <nil> here
	// 200 ""
	// 200 "true"
}

func ExampleFenced() {
	// The server that owns the data remembers the highest token of each key.
	var fences fence.Memory
	mux := http.NewServeMux()
	mux.Handle("PUT /report", httplock.Fenced(&fences, nil, nil)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})))
	server := httptest.NewServer(mux)
	defer server.Close()

	// Its clients send the token of the lock under which they work.
	transport, err := httplock.NewTransport(nil, server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: transport}

	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	err = locks.Do(context.Background(), "report", func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL+"/report", strings.NewReader("..."))
		if err != nil {
			return err
		}
		response, err := client.Do(r)
		if err != nil {
			return err // also if the lock is lost
		}
		defer response.Body.Close()
		if response.StatusCode == http.StatusPreconditionFailed {
			return errors.New("another has had the lock since")
		}
		fmt.Println(response.Status)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 204 No Content
}

func ExampleProblemOf() {
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	export := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock, err := locks.TryLock(r.Context(), "export")
		if err != nil {
			httplock.ProblemOf(err).ServeHTTP(w, r) // 409 while somebody else exports
			return
		}
		defer lock.Unlock()
		fmt.Fprint(w, "exported")
	})

	other, err := locks.TryLock(context.Background(), "export")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer other.Unlock()
	w := httptest.NewRecorder()
	export.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/export", nil))
	fmt.Println(w.Body)
	// Output: {"title":"Conflict","status":409,"detail":"Another request for the same is being worked on."}
}
