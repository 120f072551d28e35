package gcslock

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/objects"
	"github.com/holdfast-go/holdfast/internal/silence"
)

var (
	errNoObject  = errors.New("there is no such object")
	errMissing   = errors.New("there is no such object or bucket")
	errTorn      = errors.New("the data do not match the checksum of the object")
	errThrottled = errors.New("the service accepts about one write a second to one object, and others write")
)

// An answerError is an answer of the service that is no success.
type answerError struct {
	status int
	code   string // such as conditionNotMet or NoSuchKey; "" if the answer has none
	text   string
}

// newAnswerError reads an answer of the JSON API or of the XML API.
func newAnswerError(status int, data []byte) *answerError {
	e := &answerError{status: status}
	var object struct {
		Error struct {
			Message string
			Errors  []struct{ Reason string }
		}
	}
	var document struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}
	if json.Unmarshal(data, &object) == nil {
		if e.text = object.Error.Message; len(object.Error.Errors) > 0 {
			e.code = object.Error.Errors[0].Reason
		}
	} else if xml.Unmarshal(data, &document) == nil {
		e.code, e.text = document.Code, document.Message
	}
	return e
}

func (e *answerError) Error() string {
	text := fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
	if e.code != "" {
		text = fmt.Sprintf("%d %s", e.status, e.code)
	}
	if e.text != "" {
		text += fmt.Sprintf(": %.200s", e.text)
	}
	switch e.status {
	case http.StatusForbidden:
		text += " (the store needs the role Storage Object User: it gets, creates, replaces and lists objects)"
	case http.StatusTooManyRequests:
		text += " (" + errThrottled.Error() + ")"
	}
	return text
}

// Is tells the answers apart on which the store acts.
func (e *answerError) Is(target error) bool {
	switch target {
	case objects.ErrNoBucket:
		return e.status == http.StatusNotFound && (e.code == "NoSuchBucket" || e.code == "notFound")
	case errNoObject:
		return e.code == "NoSuchKey"
	case errMissing:
		return e.status == http.StatusNotFound && e.code == ""
	case errThrottled:
		return e.status == http.StatusTooManyRequests
	}
	return false
}

// A credentialsError says that the credentials of this process cannot be had.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return "there are no credentials: " + e.err.Error() }

func (e *credentialsError) Unwrap() error { return e.err }

// A tokens is a source of tokens whose errors are told apart from those of the bucket.
type tokens struct{ oauth2.TokenSource }

func (s tokens) Token() (*oauth2.Token, error) {
	t, err := s.TokenSource.Token()
	if err != nil {
		return nil, &credentialsError{plainly(err)}
	}
	return t, nil
}

// plainly leaves out the body of an answer, which may have secrets. The result is no answerError,
// so a 404 or 429 of the service of tokens cannot pass for an answer of the bucket.
func plainly(err error) error {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) || answer.Response == nil {
		return err
	}
	status := answer.Response.StatusCode
	return fmt.Errorf("%d %s", status, cmp.Or(answer.ErrorCode, http.StatusText(status)))
}

// failure describes the error of a request in few words. The error of a service that has not
// answered matches the error of ctx only if ctx has ended.
func (s *service) failure(ctx context.Context, what, name string, began time.Time, err error) error {
	var answer *answerError
	var sent *url.Error
	var missing *credentialsError
	var retrieved *oauth2.RetrieveError
	switch {
	case errors.As(err, &missing):
		err = fmt.Errorf("%w: %w", driver.ErrUnwritten, silence.For(ctx, missing, time.Since(began)))
	case errors.As(err, &retrieved):
		err = fmt.Errorf("%w: %w", driver.ErrUnwritten, &credentialsError{plainly(retrieved)})
	case errors.As(err, &answer):
		err = answer
	case errors.As(err, &sent):
		err = s.at(silence.For(ctx, sent.Err, time.Since(began)))
	default:
		err = s.at(silence.For(ctx, err, time.Since(began)))
	}
	return fmt.Errorf("%s gs://%s/%s: %w", what, s.bucket, name, err)
}

// at names the service, unless it is Google.
func (s *service) at(err error) error {
	if u, wrong := url.Parse(s.endpoint); wrong == nil && s.endpoint != google {
		return fmt.Errorf("%s: %w", u.Host, err)
	}
	return err
}

// refused marks the error of a write that was certainly not carried out.
func refused(err error) error {
	var answer *answerError
	var missing *credentialsError
	if errors.As(err, &missing) { // whose answer is not that of the bucket
		return err
	}
	if !errors.As(err, &answer) {
		if call := (*net.OpError)(nil); errors.As(err, &call) && call.Op == "dial" {
			return fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
		}
		return err
	}
	switch answer.status {
	case http.StatusPreconditionFailed:
		if answer.code == "orgPolicyConstraintFailed" { // A policy refuses every write, not the condition.
			return fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
		}
		return fmt.Errorf("%w: %w", caslock.ErrConflict, err)
	case http.StatusRequestEntityTooLarge, http.StatusNotImplemented:
		return fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	case http.StatusBadRequest:
		if answer.code == "" { // Only a proxy has answered.
			return err
		}
		return fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
		http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusLengthRequired, http.StatusTooManyRequests:
		return fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
	}
	return err
}
