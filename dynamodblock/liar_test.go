package dynamodblock_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
)

// A liar speaks the protocol of DynamoDB, and ignores some conditions, as an emulator may.
type liar struct {
	conditionaltest.Lies

	tells bool // the item in a refusal, as DynamoDB does and dynalite does not

	table string // the description of the table
	ttl   string // the description of the TTL

	lose   bool                        // the answer to the next write
	garble func(w http.ResponseWriter) // answers the next write

	answer func(w http.ResponseWriter, action string) bool // before all else; true if it has answered

	mu     sync.Mutex
	items  map[string]map[string]any
	writes int
	reads  int
}

const goodTable = `{"Table":{"TableStatus":"ACTIVE","AttributeDefinitions":[{"AttributeName":"name","AttributeType":"S"}],"KeySchema":[{"AttributeName":"name","KeyType":"HASH"}]%s}}`

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if l.answer != nil && l.answer(w, action) {
		return
	}
	var in struct {
		Item, Key                 map[string]any
		ConditionExpression       string
		ExpressionAttributeValues map[string]any
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return
	}
	switch action {
	case "DescribeTable":
		fmt.Fprint(w, l.table)
	case "DescribeTimeToLive":
		fmt.Fprint(w, l.ttl)
	case "GetItem":
		l.reads++
		say(w, map[string]any{"Item": l.items[textOf(in.Key["name"])]})
	case "PutItem":
		name := textOf(in.Item["name"])
		old := l.items[name]
		same := old != nil && in.ConditionExpression == "#v = :v" && textOf(old["version"]) == textOf(in.ExpressionAttributeValues[":v"])
		if !l.Writes(in.ConditionExpression == "attribute_not_exists(#n)", old != nil, same) {
			answer := map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "message": "as the test says"}
			if l.tells && old != nil {
				answer["Item"] = old
			}
			w.WriteHeader(http.StatusBadRequest)
			say(w, answer)
			return
		}
		l.items[name] = in.Item
		l.writes++
		if l.lose {
			l.lose = false
			panic(http.ErrAbortHandler)
		}
		if answer := l.garble; answer != nil {
			l.garble = nil
			answer(w)
			return
		}
		say(w, map[string]any{})
	default:
		refuse(w, http.StatusBadRequest, "UnknownOperationException")
	}
}

func textOf(value any) string {
	text, _ := value.(map[string]any)["S"].(string)
	return text
}

func say(w http.ResponseWriter, answer any) {
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	if code != "" {
		fmt.Fprintf(w, `{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"as the test says"}`, code)
	}
}

// start returns the URL of a table of the liar.
func (l *liar) start(t testing.TB) string {
	t.Helper()
	l.items = make(map[string]map[string]any)
	if l.table == "" {
		l.table = fmt.Sprintf(goodTable, "")
	}
	if l.ttl == "" {
		l.ttl = `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"expires"}}`
	}
	s := httptest.NewServer(l)
	t.Cleanup(s.Close)
	keys := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(keys, []byte("[default]\naws_access_key_id = a\naws_secret_access_key = moonlight\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "dynamodb://table?endpoint=" + s.URL + "&credentials=" + keys
}

func TestOpenRefusesEnginesThatIgnoreConditions(t *testing.T) {
	t.Parallel()
	conditionaltest.Refused(t, "an item", func(lies conditionaltest.Lies) string { return (&liar{Lies: lies}).start(t) })
	opened(t, (&liar{tells: true}).start(t))
}

// A refusal that tells the item needs no further read.
func TestRefusalTellsTheItem(t *testing.T) {
	t.Parallel()
	for _, tells := range []bool{false, true} {
		l := &liar{tells: tells}
		at := l.start(t)
		one, other := opened(t, at), opened(t, at)
		for _, s := range []driver.Store{one, other} {
			a := ask("key", "id")
			granted(t, s, a)
			if err := release(t.Context(), s, a); err != nil {
				t.Fatal(err)
			}
		}
		reads := l.reads
		granted(t, one, ask("key", "again"))
		if got, want := l.reads-reads, map[bool]int{false: 1, true: 0}[tells]; got != want {
			t.Errorf("tells=%v: %d reads, want %d", tells, got, want)
		}
	}
}
