package servers

import (
	"net/http"
	"strings"
	"testing"
)

func TestS3(t *testing.T) {
	s := StartS3(t)
	ask := func() (status int, err error) {
		answer, err := http.Get("http://" + s.Addr() + "/" + S3Bucket)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	if status, err := ask(); err != nil || status != http.StatusForbidden {
		t.Errorf("without the keys: status %d, %v", status, err)
	}
	Until(t, "a line in the log", func() bool { return s.Requests() > 0 })
	at := s.Through("127.0.0.1:9")
	if !strings.HasPrefix(at, "s3://locks?") || !strings.Contains(at, "127.0.0.1%3A9") || strings.Contains(at, s.secret) {
		t.Errorf("through a proxy it is %s", at)
	}
	s.Kill()
	if _, err := ask(); err == nil {
		t.Error("a killed server answers")
	}
	s.Restart()
	if _, err := ask(); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}
