package servers

import (
	"net/http"
	"strings"
	"testing"
)

func TestAzurite(t *testing.T) {
	a := StartAzurite(t)
	ask := func() (status int, err error) {
		answer, err := http.Get(a.Endpoint() + "/" + AzureContainer + "/blob")
		if err != nil {
			return 0, err
		}
		if limit := answer.Header.Get("Keep-Alive"); limit != "" {
			t.Errorf("the emulator ends an idle connection: %s", limit)
		}
		return answer.StatusCode, answer.Body.Close()
	}
	if status, err := ask(); err != nil || status != http.StatusNotFound && status != http.StatusForbidden {
		t.Errorf("without the key: status %d, %v", status, err)
	}
	Until(t, "a line in the log", func() bool { return a.Requests() > 1 })
	at := a.Through("127.0.0.1:9")
	if !strings.HasPrefix(at, "azblob://holdfast/locks?") || !strings.Contains(at, "127.0.0.1%3A9") || strings.Contains(at, a.Key) {
		t.Errorf("through a proxy it is %s", at)
	}
	a.Kill()
	if _, err := ask(); err == nil {
		t.Error("a killed emulator answers")
	}
	a.Restart()
	Until(t, "the container of before the kill in the log", func() bool {
		return strings.Contains(a.log(), "?restype=container HTTP/1.1\" 409")
	})
}
