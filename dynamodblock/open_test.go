package dynamodblock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/dynamodblock"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

func TestOpenWrongURL(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"dynamodb:", "dynamodb:table", "dynamodb://", "dynamodb://ab", "dynamodb://" + strings.Repeat("a", 256), "dynamodb://table#a", "dynamodb://table:8000", "dynamodb://user:moonlight@table",
		"dynamodb://table/prefix", "dynamodb://table?perfix=a", "dynamodb://table?look=1ms", "dynamodb://table?endpoint=h:8000",
		"dynamodb://table?endpoint=http://user:moonlight@h", "dynamodb://table?region=a&prefix=a/b", "dynamodb://table?region=a&prefix=.a", "dynamodb://table?region=a&prefix=a%01",
	} {
		_, err := driver.Open(t.Context(), at)
		if !errors.Is(err, driver.ErrURL) || strings.Contains(err.Error(), "moonlight") {
			t.Errorf("%s: %v, want a wrong store URL, without the password", at, err)
		}
	}
}

func TestNewRefusesOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []dynamodblock.Options{{Prefix: "locks/"}, {Prefix: ".locks"}, {Prefix: strings.Repeat("a", 256)}, {Look: -1}, {Look: time.Millisecond}} {
		if _, err := dynamodblock.New(client(t), "table", &o); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", o, err)
		}
	}
	if _, err := dynamodblock.New(client(t), "", nil); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("no table: %v, want ErrInvalid", err)
	}
}

// A missing profile and a dead engine are told by name.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	liar := (&liar{}).start(t)
	_, keys, _ := strings.Cut(liar, "&credentials=")
	for at, want := range map[string]string{
		"dynamodb://locks?endpoint=http://127.0.0.1:1&credentials=" + keys:                "127.0.0.1:1: dial tcp",
		"dynamodb://locks?endpoint=http://127.0.0.1:1&credentials=" + keys + "&profile=b": "shared config profile, b",
	} {
		_, err := driver.Open(t.Context(), at)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "moonlight") {
			t.Errorf("%s: %v, want %s", at, err, want)
		}
	}
}

// The answer of a service that refuses to give credentials is not the answer of DynamoDB.
func TestNoCredentials(t *testing.T) {
	t.Parallel()
	refuses := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		answer := &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusPreconditionFailed}}
		return aws.Credentials{}, &smithy.OperationError{
			ServiceID: "STS", OperationName: "AssumeRole", Err: &smithyhttp.ResponseError{Response: answer, Err: errors.New("no role")},
		}
	})
	s, err := dynamodblock.New(dynamodb.New(clientOf(t, (&liar{}).start(t)).Options(), func(o *dynamodb.Options) { o.Credentials = refuses }), "table", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Acquire(t.Context(), ask("key", "id")); !errors.Is(err, driver.ErrUnwritten) || errors.Is(err, caslock.ErrConflict) || !strings.Contains(err.Error(), "there are no credentials") {
		t.Errorf("Acquire returned %v, want that there are no credentials", err)
	}
}

// A Store that New has made tests the engine before its first lock.
func TestNewProvesTheEngineBeforeTheFirstLock(t *testing.T) {
	t.Parallel()
	l := &liar{}
	at := l.start(t)
	s := opened(t, at) // proves an engine that lies from now on
	l.mu.Lock()
	l.Replaces = true
	l.mu.Unlock()
	if g, err := s.Acquire(t.Context(), ask("key", "id")); err != nil || !g.OK {
		t.Fatalf("%+v, %v", g, err)
	}
	fresh, err := dynamodblock.New(clientOf(t, at), "table", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	if _, err := fresh.Acquire(t.Context(), ask("other", "id")); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("Acquire returned %v, want ErrInvalid", err)
	}
	if _, err := fresh.Check(t.Context()); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("Check returned %v, want ErrInvalid", err)
	}
}

// TestAnswers has a service give each answer to a write once, and expects the next attempt to
// succeed. The outcome of the write is unknown unless the service has certainly refused it.
func TestAnswers(t *testing.T) {
	t.Parallel()
	conditionaltest.Answers(t, "table", []conditionaltest.Answer{
		{Status: http.StatusBadRequest, Code: "ConditionalCheckFailedException", Want: conditionaltest.ErrDone},
		{Status: http.StatusBadRequest, Code: "TransactionConflictException", Want: conditionaltest.ErrDone},
		{Status: http.StatusBadRequest, Code: "ReplicatedWriteConflictException", Want: conditionaltest.ErrDone},
		{Status: http.StatusBadRequest, Code: "ResourceNotFoundException", Want: driver.ErrUnwritten},
		{Status: http.StatusBadRequest, Code: "AccessDeniedException", Want: driver.ErrUnwritten},
		{Status: http.StatusBadRequest, Code: "ExpiredTokenException", Want: driver.ErrUnwritten},
		{Status: http.StatusBadRequest, Code: "ProvisionedThroughputExceededException", Want: driver.ErrUnwritten},
		{Status: http.StatusBadRequest, Code: "ThrottlingException", Want: driver.ErrUnwritten},
		{Status: http.StatusBadRequest, Code: "ValidationException", Want: driver.ErrUnwritten},
		{Status: http.StatusForbidden, Code: "AccessDeniedException", Want: driver.ErrUnwritten},
		{Status: http.StatusMovedPermanently, Code: "", Want: driver.ErrUnwritten},
		{Status: http.StatusRequestEntityTooLarge, Code: "", Want: driver.ErrInvalid},
		{Status: http.StatusRequestTimeout, Code: "", Want: nil},
		{Status: http.StatusBadRequest, Code: "", Want: nil},
		{Status: http.StatusInternalServerError, Code: "InternalServerError", Want: nil},
		{Status: http.StatusServiceUnavailable, Code: "", Want: nil},
	}, func(t *testing.T, a conditionaltest.Answer, tries *atomic.Int32) driver.Store {
		l := &liar{}
		s := opened(t, l.start(t))
		l.mu.Lock()
		defer l.mu.Unlock()
		l.answer = func(w http.ResponseWriter, action string) bool {
			if action != "PutItem" || tries.Add(1) > 1 {
				return false
			}
			refuse(w, a.Status, a.Code)
			return true
		}
		return s
	})
}

// A write whose answer is lost may have been carried out: the next call finds it.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	l := &liar{}
	s := opened(t, l.start(t))
	writes := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.writes
	}
	conditionaltest.Lost(t, s, writes, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lose = true
	})
}

// An item that is too large can never be kept.
func TestItemTooLarge(t *testing.T) {
	t.Parallel()
	s := opened(t, under(shared.URL(), strings.ToLower(rand.Text())))
	a := ask("key", "id")
	a.Note = strings.Repeat("a", 400<<10)
	if _, err := s.Acquire(t.Context(), a); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("%.200v, want ErrInvalid", err)
	}
}

// The item of another program is no record.
func TestForeignItem(t *testing.T) {
	t.Parallel()
	prefix := strings.ToLower(rand.Text())
	if _, err := client(t).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(servers.DynamoTable), Item: primary(prefix, "key")}); err != nil {
		t.Fatal(err)
	}
	s := opened(t, under(shared.URL(), prefix))
	if _, err := s.Acquire(t.Context(), ask("key", "id")); err == nil || !strings.Contains(err.Error(), "not written by holdfast") {
		t.Errorf("%v, want that the item is foreign", err)
	}
	if keys := keysOf(t, s); len(keys) > 0 {
		t.Errorf("the keys are %q", keys)
	}
}
