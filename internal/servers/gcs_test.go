package servers

import (
	"net/http"
	"strings"
	"testing"
)

func TestGCS(t *testing.T) {
	s := StartGCS(t)
	ask := func() (status int, err error) {
		answer, err := http.Get("http://" + s.Addr() + "/storage/v1/b/" + GCSBucket)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	if status, err := ask(); err != nil || status != http.StatusOK || s.Requests() != 1 {
		t.Errorf("status %d, %v after %d requests", status, err, s.Requests())
	}
	if at := s.Through("127.0.0.1:9"); !strings.HasPrefix(at, "gs://locks?") || !strings.Contains(at, "127.0.0.1%3A9") {
		t.Errorf("through a proxy it is %s", at)
	}
	s.Pause()
	s.Kill() // waits for no upload of a paused server
	if _, err := ask(); err == nil {
		t.Error("a killed server answers")
	}
	s.Restart()
	if status, err := ask(); err != nil || status != http.StatusOK {
		t.Errorf("after a restart: status %d, %v", status, err)
	}
}
