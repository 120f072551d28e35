package azurelock

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/objects"
	"github.com/holdfast-go/holdfast/internal/silence"
)

var errNoBlob = errors.New("there is no such blob")

// An answerError is an answer of the service that is no success.
type answerError struct {
	status int
	code   string // such as BlobNotFound; "" if the answer has none
	text   string
}

// answerOf returns the error of an answer.
func answerOf(answer *http.Response, body []byte) *answerError {
	var said struct{ Code, Message string }
	// The answer of a proxy need not be XML.
	if err := xml.Unmarshal(body, &said); err != nil {
		said.Code, said.Message = "", ""
	}
	e := &answerError{status: answer.StatusCode, code: answer.Header.Get("x-ms-error-code")}
	if e.code == "" {
		e.code = said.Code
	}
	e.text, _, _ = strings.Cut(strings.TrimSpace(said.Message), "\n") // The number of the request and the time follow.
	return e
}

func (e *answerError) Error() string {
	text := fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
	if e.code != "" {
		text = fmt.Sprintf("%d %s", e.status, e.code)
	}
	if e.text != "" {
		text += ": " + e.text
	}
	if e.status == http.StatusForbidden {
		text += " (the store needs the role Storage Blob Data Contributor on the container, or a SAS token with sp=rcwl)"
	}
	return text
}

func (e *answerError) Is(target error) bool {
	switch target {
	case objects.ErrNoBucket:
		return e.code == "ContainerNotFound"
	case errNoBlob:
		return e.code == "BlobNotFound"
	}
	return false
}

// failure describes the error of a request in few words, without the URL, which may have a SAS
// token. The error of a service that has not answered matches the error of ctx only if ctx has
// ended.
func (s *service) failure(ctx context.Context, what, name string, began time.Time, err error) error {
	var answer *answerError
	var sent *url.Error
	switch {
	case errors.As(err, &answer):
		err = answer
	case errors.Is(err, errNoToken): // whose answer is not that of the container
		err = fmt.Errorf("%w: %w", driver.ErrUnwritten, silence.For(ctx, err, time.Since(began)))
	case errors.As(err, &sent):
		err = fmt.Errorf("%s: %w", s.at.Host, silence.For(ctx, sent.Err, time.Since(began)))
	default:
		err = fmt.Errorf("%s: %w", s.at.Host, silence.For(ctx, err, time.Since(began)))
	}
	return fmt.Errorf("%s %s/%s: %w", what, s, name, err)
}

// refused marks the error of a write that was certainly not carried out.
func refused(err error) error {
	var answer *answerError
	if !errors.As(err, &answer) {
		if call := (*net.OpError)(nil); errors.As(err, &call) && call.Op == "dial" {
			return fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
		}
		return err
	}
	conflict := false
	switch answer.status {
	case http.StatusPreconditionFailed:
		conflict = !strings.HasPrefix(answer.code, "Lease") // A blob with a lease refuses every write.
	case http.StatusConflict:
		if answer.code == "" { // Only a proxy may have answered.
			return err
		}
		conflict = answer.code == "BlobAlreadyExists"
	case http.StatusNotFound:
		conflict = answer.code == "BlobNotFound" // that a write with If-Match expects
	case http.StatusRequestEntityTooLarge, http.StatusNotImplemented:
		return fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	case http.StatusBadRequest:
		if answer.code == "" { // Only a proxy may have answered.
			return err
		}
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusUnauthorized, http.StatusForbidden,
		http.StatusMethodNotAllowed, http.StatusLengthRequired:
	default:
		return err
	}
	if conflict {
		return fmt.Errorf("%w: %w", caslock.ErrConflict, err)
	}
	return fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
}
