package demo

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestRoundRobin(t *testing.T) {
	var addresses []string
	for i := range 3 {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%d %s", i, r.FormValue("buyer"))
		}))
		defer s.Close()
		addresses = append(addresses, s.URL)
	}
	proxy, err := roundRobin(addresses)
	if err != nil {
		t.Fatal(err)
	}
	door, err := openSite(proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer door.close()
	got := make(map[string]int)
	for range 6 {
		_, body, err := buy(t.Context(), http.DefaultClient, door.url, "Ann & Bob")
		if err != nil {
			t.Fatal(err)
		}
		got[string(body)]++
	}
	if len(got) != 3 || got["0 Ann & Bob"] != 2 || got["1 Ann & Bob"] != 2 || got["2 Ann & Bob"] != 2 {
		t.Errorf("answers %v, want two of each server", got)
	}
}

// TestDeadServer: a buyer hears of it, and the others are served.
func TestDeadServer(t *testing.T) {
	proxy, err := roundRobin([]string{"http://127.0.0.1:1"}) // where nobody listens
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	proxy.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/buy", nil))
	if body, _ := io.ReadAll(w.Body); w.Code != http.StatusBadGateway || len(body) == 0 {
		t.Errorf("status %d, %q, want 502 and a reason", w.Code, body)
	}
}
