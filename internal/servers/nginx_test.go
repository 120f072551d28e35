package servers

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"testing"
)

func TestNginx(t *testing.T) {
	t.Parallel()
	n := StartNginx(t, func(addr string) string {
		return fmt.Sprintf("server { listen %s; location / { return 200 hello; } }", addr)
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func() (string, error) {
		response, err := client.Get(n.URL())
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return string(text), err
	}
	if got, err := get(); got != "hello" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	n.Kill()
	if _, err := get(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a killed server says %v, want a refused connection", err)
	}
	n.Restart()
	if got, err := get(); got != "hello" || err != nil {
		t.Errorf("after a restart: %q, %v", got, err)
	}
}
