package dynamodblock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// errNoTable says that the table is missing.
var errNoTable = errors.New("there is no such table")

// An answerError is an answer of the service that is no success.
type answerError struct {
	status int
	code   string // such as AccessDeniedException; "" if the answer has none
	text   string
	err    error // of the SDK
}

func (e *answerError) Error() string {
	text := fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
	if e.code != "" {
		text = fmt.Sprintf("%d %s", e.status, e.code)
	}
	if e.text != "" {
		text += ": " + e.text
	}
	if e.code == "AccessDeniedException" {
		text += " (the store needs dynamodb:GetItem and dynamodb:PutItem on the table)"
	}
	return text
}

func (e *answerError) Unwrap() error { return e.err }

func (e *answerError) Is(target error) bool {
	return target == errNoTable && e.code == "ResourceNotFoundException"
}

// failure describes the error of a call of the SDK in few words. The error of a service that
// has not answered matches the error of ctx only if ctx has ended.
func (r *register) failure(ctx context.Context, what, name string, began time.Time, err error) error {
	var answer *smithyhttp.ResponseError
	var sent *url.Error
	var call, before *smithy.OperationError
	if errors.As(err, &call) {
		err = call.Err
	}
	switch {
	case errors.As(err, &before): // the call that gets credentials, whose answer is not that of DynamoDB
		err = fmt.Errorf("%w: there are no credentials: %w", driver.ErrUnwritten, silence.For(ctx, err, time.Since(began)))
	case errors.As(err, &answer) && answer.Response != nil && answer.HTTPStatusCode() >= http.StatusMultipleChoices:
		// An answer of success that the client cannot read is no answer.
		e := &answerError{status: answer.HTTPStatusCode(), err: err}
		var api smithy.APIError
		if errors.As(err, &api) {
			e.code = strings.TrimSuffix(api.ErrorCode(), "UnknownError")
			// The refusal of a signature repeats the headers, and so the token of the session.
			e.text, _, _ = strings.Cut(api.ErrorMessage(), "\n")
		}
		if t, err := http.ParseTime(answer.Response.Header.Get("Date")); err == nil {
			r.Note(t)
		}
		err = e
	case errors.As(err, &sent):
		err = r.at(silence.For(ctx, sent.Err, time.Since(began)))
	default:
		var canceled *smithy.CanceledError
		if errors.As(err, &canceled) {
			err = canceled.Err
		}
		err = r.at(silence.For(ctx, err, time.Since(began)))
	}
	if errors.Is(err, errNoTable) {
		return fmt.Errorf(`there is no table %s: run "holdfast init" once with the URL of this store, or Store.Create: %w`, r.table, err)
	}
	return fmt.Errorf("%s %s: %w", what, r.place(name), err)
}

// at names the service, unless it is AWS.
func (r *register) at(err error) error {
	if endpoint := r.client.Options().BaseEndpoint; endpoint != nil {
		if u, wrong := url.Parse(*endpoint); wrong == nil {
			return fmt.Errorf("%s: %w", u.Host, err)
		}
	}
	return err
}

// refused marks the error of a write that was certainly not carried out.
func (r *register) refused(name string, err error) error {
	var answer *answerError
	if !errors.As(err, &answer) {
		if call := (*net.OpError)(nil); errors.As(err, &call) && call.Op == "dial" {
			return fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
		}
		return err
	}
	switch answer.code {
	case "ConditionalCheckFailedException":
		return r.conflict(name, answer, err)
	case "TransactionConflictException", "ReplicatedWriteConflictException": // Another write came first.
		return fmt.Errorf("%w: %w", caslock.ErrConflict, err)
	case "ValidationException":
		if strings.Contains(strings.ToLower(answer.text), "item size") {
			return fmt.Errorf("%w: %w", driver.ErrInvalid, err)
		}
	}
	switch {
	case answer.status == http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	case answer.status == http.StatusRequestTimeout || answer.status >= http.StatusInternalServerError:
		return err // The service may have carried the write out.
	case answer.status == http.StatusBadRequest && answer.code == "": // Only a proxy has answered.
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
}

// conflict is the error of a refused condition. It has the record that the item has instead, if
// the engine tells the item.
func (r *register) conflict(name string, answer *answerError, err error) error {
	var refusal *types.ConditionalCheckFailedException
	if errors.As(answer.err, &refusal) && len(refusal.Item) > 0 {
		if record, strange := r.record(name, refusal.Item); strange == nil {
			return fmt.Errorf("%w: %w", &caslock.ConflictError{Record: record}, err)
		}
	}
	return fmt.Errorf("%w: %w", caslock.ErrConflict, err)
}
