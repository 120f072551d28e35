package s3lock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/objects"
	"github.com/holdfast-go/holdfast/internal/silence"
)

var errNoObject = errors.New("there is no such object")

// An answerError is an answer of the service that is no success.
type answerError struct {
	status int
	code   string // such as AccessDenied; "" if the answer has none
	text   string
	err    error // of the SDK
}

func (e *answerError) Error() string {
	text := fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
	if e.code != "" && e.code != "UnknownError" {
		text = fmt.Sprintf("%d %s", e.status, e.code)
	}
	if e.text != "" {
		text += ": " + e.text
	}
	if e.status == http.StatusForbidden {
		text += " (the store needs s3:GetObject and s3:PutObject on its objects, and s3:ListBucket on the bucket)"
	}
	return text
}

func (e *answerError) Unwrap() error { return e.err }

// Is looks at the code: services also answer 404 if they do not know the access key.
func (e *answerError) Is(target error) bool {
	switch target {
	case objects.ErrNoBucket:
		return e.code == "NoSuchBucket"
	case errNoObject:
		return e.code == "NoSuchKey"
	}
	return false
}

// failure describes the error of a call of the SDK in few words. The error of a service that
// has not answered matches the error of ctx only if ctx has ended.
func (s *service) failure(ctx context.Context, what, name string, began time.Time, err error) error {
	var answer *smithyhttp.ResponseError
	var sent *url.Error
	var call, before *smithy.OperationError
	if errors.As(err, &call) {
		err = call.Err
	}
	switch {
	case errors.As(err, &before): // the call that gets credentials, whose answer is not that of S3
		err = fmt.Errorf("%w: there are no credentials: %w", driver.ErrUnwritten, silence.For(ctx, err, time.Since(began)))
	case errors.As(err, &answer) && answer.Response != nil && answer.HTTPStatusCode() != 0:
		e := &answerError{status: answer.HTTPStatusCode(), err: err}
		var api smithy.APIError
		if errors.As(err, &api) {
			e.code = api.ErrorCode()
			// The refusal of a signature may repeat the headers, and so the token of the session.
			e.text, _, _ = strings.Cut(api.ErrorMessage(), "\n")
		}
		if region := answer.Response.Header.Get("X-Amz-Bucket-Region"); region != "" && e.status < 400 {
			e.text = "the bucket is in the region " + region
		}
		err = e
	case errors.As(err, &sent):
		err = s.at(silence.For(ctx, sent.Err, time.Since(began)))
	default:
		var canceled *smithy.CanceledError
		if errors.As(err, &canceled) {
			err = canceled.Err
		}
		err = s.at(silence.For(ctx, err, time.Since(began)))
	}
	return fmt.Errorf("%s s3://%s/%s: %w", what, s.name, name, err)
}

// at names the service, unless it is AWS.
func (s *service) at(err error) error {
	if endpoint := s.client.Options().BaseEndpoint; endpoint != nil {
		if u, wrong := url.Parse(*endpoint); wrong == nil {
			return fmt.Errorf("%s: %w", u.Host, err)
		}
	}
	return err
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
	switch answer.status {
	case http.StatusPreconditionFailed:
		return fmt.Errorf("%w: %w", caslock.ErrConflict, err)
	case http.StatusNotFound:
		if errors.Is(err, errNoObject) { // that a write with If-Match expects
			return fmt.Errorf("%w: %w", caslock.ErrConflict, err)
		}
		return fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
	case http.StatusConflict:
		if answer.code == "ConditionalRequestConflict" || answer.code == "OperationAborted" { // Another write came first.
			return fmt.Errorf("%w: %w", caslock.ErrConflict, err)
		}
		return fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
	case http.StatusRequestEntityTooLarge, http.StatusNotImplemented:
		return fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	case http.StatusBadRequest:
		// The service may have waited for the write in vain, or only a proxy has answered.
		if answer.code == "RequestTimeout" || answer.code == "" || answer.code == "UnknownError" {
			return err
		}
		return fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusUnauthorized, http.StatusForbidden,
		http.StatusMethodNotAllowed, http.StatusLengthRequired:
		return fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
	}
	return err
}
