package dynamodblock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/dynamodblock"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// Open of a Locker names what makes a missing table. Many processes may make the table at once.
func TestCreate(t *testing.T) {
	t.Parallel()
	at := servers.StartDynamoDBWithoutTable(t).URL()
	open := func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, at, nil) }
	if _, err := servers.Answer(t.Context(), open); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "there is no table locks: run \"holdfast init\" once with the URL of this store") {
		t.Errorf("opened without a table: %v", err)
	}
	s := opened(t, at).(driver.Creator)
	if _, err := s.(driver.Store).Acquire(t.Context(), ask("key", "early")); !errors.Is(err, driver.ErrUnwritten) || !strings.Contains(err.Error(), "holdfast init") {
		t.Errorf("Acquire without a table returned %v", err)
	}
	errs := make([]error, 4)
	var all sync.WaitGroup
	for i := range errs {
		other := opened(t, at).(driver.Creator)
		all.Go(func() { errs[i] = other.Create(t.Context()) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	warnings, err := s.Check(t.Context())
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "TTL") { // dynalite has none
		t.Errorf("%q, %v", warnings, err)
	}
	granted(t, s.(driver.Store), ask("key", "id"))
}

func TestSchema(t *testing.T) {
	t.Parallel()
	text := strings.Join(opened(t, (&liar{}).start(t)).(driver.Creator).Schema(), "\n")
	for _, want := range []string{
		"create-table --table-name table --region us-east-1 --endpoint-url http://127.0.0.1:", "--billing-mode PAY_PER_REQUEST",
		"AttributeName=name,KeyType=HASH", "wait table-exists", "update-time-to-live", "Enabled=true,AttributeName=expires",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the statements lack %s:\n%s", want, text)
		}
	}
}

// A region is any text. The statements have the text as one word of a shell.
func TestSchemaQuotes(t *testing.T) {
	t.Parallel()
	client := dynamodb.New(dynamodb.Options{Region: "eu $(touch x)'", BaseEndpoint: aws.String("http://h:8000/a;b")})
	s, err := dynamodblock.New(client, "locks", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, statement := range s.Schema() {
		said, err := exec.CommandContext(t.Context(), "sh", "-c", `aws() { printf '%s\n' "$@"; }; `+statement).Output()
		words := strings.Split(string(said), "\n")
		for name, want := range map[string]string{"--table-name": "locks", "--region": "eu $(touch x)'", "--endpoint-url": "http://h:8000/a;b"} {
			if i := slices.Index(words, name); err != nil || i < 0 || words[i+1] != want {
				t.Errorf("%s: a shell reads %q, %v; want %s %q", statement, words, err, name, want)
			}
		}
	}
}

// acts answers the calls about a table, in order of the calls of each action. The last answer
// stays. "" is the answer of the liar.
func acts(answers map[string][]string) func(w http.ResponseWriter, action string) bool {
	return func(w http.ResponseWriter, action string) bool {
		all := answers[action]
		if len(all) == 0 || all[0] == "" {
			return false
		}
		answer := all[0]
		if len(all) > 1 {
			answers[action] = all[1:]
		}
		if strings.HasPrefix(answer, "{") {
			fmt.Fprint(w, answer)
			return true
		}
		code, message, _ := strings.Cut(answer, ": ")
		w.WriteHeader(http.StatusBadRequest)
		say(w, map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#" + code, "message": message})
		return true
	}
}

// A table may be there already, in any state and with any rights to look at the table.
func TestCreateBesideATable(t *testing.T) {
	t.Parallel()
	const inUse, missing, denied, unknown = "ResourceInUseException", "ResourceNotFoundException", "AccessDeniedException", "UnknownOperationException"
	state := func(name string) string {
		return strings.Replace(fmt.Sprintf(goodTable, ""), "ACTIVE", name, 1)
	}
	strong := fmt.Sprintf(goodTable, `,"Replicas":[{"RegionName":"eu-west-1"}],"MultiRegionConsistency":"STRONG"`)
	const off = `{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}`
	for what, c := range map[string]struct {
		answers map[string][]string
		want    string // of the error
		invalid bool
	}{
		"with strong consistency": {map[string][]string{"DescribeTable": {strong}, "DescribeTimeToLive": {off}, "UpdateTimeToLive": {"ValidationException: not for this table"}}, "", false},
		"seen late":               {map[string][]string{"CreateTable": {"{}", inUse}, "DescribeTable": {missing, state("CREATING"), state("ACTIVE")}}, "", false},
		"deleted meanwhile":       {map[string][]string{"CreateTable": {inUse, "{}"}, "DescribeTable": {state("DELETING"), missing, state("ACTIVE")}}, "", false},
		"archived":                {map[string][]string{"DescribeTable": {state("ARCHIVED")}}, "in the state ARCHIVED", false},
		"no right to look":        {map[string][]string{"DescribeTable": {denied}}, denied, true},
		"TTL unreadable, and off": {map[string][]string{"DescribeTimeToLive": {denied}, "UpdateTimeToLive": {"{}"}}, "", false},
		"TTL unreadable, and on":  {map[string][]string{"DescribeTimeToLive": {denied}, "UpdateTimeToLive": {"ValidationException: TimeToLive is already enabled"}}, "", false},
		"no right to the TTL":     {map[string][]string{"DescribeTimeToLive": {denied}, "UpdateTimeToLive": {denied}}, denied, true},
		"TTL of another":          {map[string][]string{"DescribeTimeToLive": {off}, "UpdateTimeToLive": {"ValidationException: TimeToLive is active on a different AttributeName"}}, "different AttributeName", false},
		"TTL turned on meanwhile": {map[string][]string{"DescribeTimeToLive": {off, ""}, "UpdateTimeToLive": {"ValidationException: TimeToLive is already enabled"}}, "", false},
		"engine without TTL":      {map[string][]string{"DescribeTimeToLive": {unknown}, "UpdateTimeToLive": {unknown}}, "", false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := &liar{}
			s := opened(t, l.start(t)).(driver.Creator)
			if c.answers["CreateTable"] == nil {
				c.answers["CreateTable"] = []string{inUse}
			}
			l.mu.Lock()
			l.answer = acts(c.answers)
			l.mu.Unlock()
			err := s.Create(t.Context())
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || errors.Is(err, driver.ErrInvalid) != c.invalid {
				t.Errorf("Create returned %v, want %q", err, c.want)
			}
		})
	}
}

// A table that is being deleted, and stays so, holds up Create until the context ends.
func TestCreateEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l := &liar{}
	s := opened(t, l.start(t)).(driver.Creator)
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	l.mu.Lock()
	l.table = strings.Replace(l.table, "ACTIVE", "DELETING", 1)
	l.answer = func(w http.ResponseWriter, action string) bool {
		if action == "DescribeTable" {
			if looks++; looks > 1 {
				cancel()
			}
			return false
		}
		refuse(w, http.StatusBadRequest, "ResourceInUseException")
		return true
	}
	l.mu.Unlock()
	if err := s.Create(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Create returned %v", err)
	}
}

// Check names each setting that weakens a promise, and refuses a table that can keep no lock.
func TestCheck(t *testing.T) {
	t.Parallel()
	const off = `{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}`
	replicas := func(mode string) string {
		return fmt.Sprintf(goodTable, `,"Replicas":[{"RegionName":"eu-west-1"}],"MultiRegionConsistency":"`+mode+`"`)
	}
	for _, c := range []struct {
		liar    *liar
		warning string
		invalid string
	}{
		{&liar{}, "", ""},
		{&liar{ttl: off}, "for the attribute expires", ""},
		{&liar{ttl: `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"other"}}`}, "for the attribute expires", ""},
		{&liar{table: replicas("EVENTUAL")}, "the last writer wins", ""},
		{&liar{table: replicas("STRONG"), ttl: off}, "", ""},
		{&liar{answer: acts(map[string][]string{"DescribeTimeToLive": {"UnknownOperationException"}})}, "for the attribute expires", ""},
		{&liar{answer: acts(map[string][]string{"DescribeTimeToLive": {"AccessDeniedException"}})}, "", ""},
		{&liar{table: strings.ReplaceAll(fmt.Sprintf(goodTable, ""), `"name"`, `"LockID"`)}, "", "HASH LockID S (want HASH name S)"},
	} {
		warnings, err := opened(t, c.liar.start(t)).(driver.Checker).Check(t.Context())
		if got := strings.Join(warnings, "; "); c.warning == "" != (got == "") || !strings.Contains(got, c.warning) {
			t.Errorf("%s: %q, want %q", c.liar.table, got, c.warning)
		}
		if c.invalid == "" && err != nil || c.invalid != "" && (!errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), c.invalid)) {
			t.Errorf("%s: %v, want %q", c.liar.table, err, c.invalid)
		}
	}
}

// A user may lack the rights to describe or to make a table.
func TestRights(t *testing.T) {
	t.Parallel()
	l := &liar{answer: func(w http.ResponseWriter, action string) bool {
		if action == "PutItem" || action == "GetItem" {
			return false
		}
		refuse(w, http.StatusBadRequest, "AccessDeniedException")
		return true
	}}
	s := opened(t, l.start(t)).(driver.Creator)
	if warnings, err := s.Check(t.Context()); err != nil || len(warnings) > 0 {
		t.Errorf("Check returned %q, %v", warnings, err)
	}
	if err := s.Create(t.Context()); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("Create returned %v, want ErrInvalid", err)
	}
}

// DynamoDB may delete an item by its own clock, not before the last claim has ended. A process
// whose clock is behind reads the clock of the answers.
func TestExpires(t *testing.T) {
	t.Parallel()
	const ahead = 1000 * time.Hour
	l := &liar{answer: func(w http.ResponseWriter, _ string) bool {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		return false
	}}
	s := opened(t, l.start(t))
	granted(t, s, ask("key", "id"))
	l.mu.Lock()
	defer l.mu.Unlock()
	text, _ := l.items["holdfast/key"]["expires"].(map[string]any)["N"].(string)
	seconds, err := strconv.ParseInt(text, 10, 64)
	if left := time.Until(time.Unix(seconds, 0)); err != nil || left < ahead+24*time.Hour || left > ahead+48*time.Hour {
		t.Errorf("the item expires in %v, %v; want a day or two after %v", left, err, ahead)
	}
}
