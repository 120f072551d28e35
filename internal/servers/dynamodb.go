package servers

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// dynaliteVersion is the release that scripts/servers installs.
const dynaliteVersion = "4.0.0"

// DynamoTable is the table of a [DynamoDB].
const DynamoTable = "locks"

// A DynamoDB is an emulator of DynamoDB with a table: dynalite over a folder. Data survive a
// kill. The emulator has no TTL, does not return the item that a condition refused, and takes
// every access key.
type DynamoDB struct {
	*Process
	TLS *Certificates // nil if the emulator speaks plain HTTP

	port        int
	credentials string // file with keys, as AWS tools read them
}

// launcher starts dynalite on loopback only, and notes each request but the glances of ready. By
// itself, dynalite ends if a client leaves in the middle of a request. Node.js ends a connection that
// was idle for five seconds, even if a request is on its way.
const launcher = `
const fs = require('fs')
const [index, port, data, log, cert, key] = process.argv.slice(1)
const tls = cert && { ssl: true, cert: fs.readFileSync(cert), key: fs.readFileSync(key) }
const server = require(index)({ path: data, createTableMs: 0, deleteTableMs: 0, updateTableMs: 0, ...tls })
const requests = fs.openSync(log, 'a')
server.on('request', (r) => { if (r.method === 'POST') fs.writeSync(requests, r.headers['x-amz-target'] + '\n') })
server.on('error', (e) => { console.error(e.code === 'EADDRINUSE' ? 'address already in use' : e); process.exit(1) })
process.on('uncaughtException', (e) => { if (e.code !== 'ECONNRESET') { console.error(e); process.exit(1) } })
server.keepAliveTimeout = 0
server.listen(Number(port), '127.0.0.1')
`

// StartDynamoDB starts an emulator with an empty table for locks.
func StartDynamoDB(tb TB) *DynamoDB {
	tb.Helper()
	return StartDynamoDBWithoutTable(tb).withTable()
}

// StartDynamoDBTLS is StartDynamoDB for an emulator that speaks HTTPS only.
func StartDynamoDBTLS(tb TB) *DynamoDB {
	tb.Helper()
	d := &DynamoDB{TLS: newCertificates(tb)}
	return d.start(tb).withTable()
}

func (d *DynamoDB) withTable() *DynamoDB {
	d.tb.Helper()
	d.must("CreateTable", `{"TableName":"`+DynamoTable+`","BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"name","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"name","KeyType":"HASH"}]}`)
	Await(d.tb, "the table of "+d.Addr(), func() error {
		said, err := d.ask("DescribeTable", `{"TableName":"`+DynamoTable+`"}`)
		if err == nil && !strings.Contains(said, `"ACTIVE"`) {
			err = errors.New(said)
		}
		return err
	})
	return d
}

// StartDynamoDBWithoutTable starts an emulator without the table that its URL names.
func StartDynamoDBWithoutTable(tb TB) *DynamoDB {
	tb.Helper()
	return new(DynamoDB).start(tb)
}

func (d *DynamoDB) start(tb TB) *DynamoDB {
	tb.Helper()
	installed := chosen(tb, "HOLDFAST_DYNALITE", "none, but run npm install --global dynalite@"+dynaliteVersion, "dynalite")
	command, err := filepath.EvalSymlinks(installed)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	index := filepath.Join(filepath.Dir(command), "index.js")
	d.Process = start(tb, program{
		name: "dynalite",
		path: nodeJS(tb),
		setup: func(tb TB, dir string) ([]string, error) {
			d.port, d.credentials = reserve(tb), filepath.Join(dir, "credentials")
			keys := "[default]\naws_access_key_id = any\naws_secret_access_key = any\n"
			args := []string{"--eval", launcher, index, strconv.Itoa(d.port), filepath.Join(dir, "data"), filepath.Join(dir, accessLog)}
			if d.TLS != nil {
				args = append(args, d.TLS.Cert, d.TLS.Key)
			}
			return args, os.WriteFile(d.credentials, []byte(keys), 0o600)
		},
		ready: func(int) error { return d.ready() },
	})
	return d
}

func (d *DynamoDB) ready() error {
	answer, err := d.TLS.caller(glance).Get(d.TLS.scheme() + d.Addr())
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// must sends a request that a test needs.
func (d *DynamoDB) must(action, body string) {
	d.tb.Helper()
	if said, err := d.ask(action, body); err != nil {
		d.tb.Fatalf("%s: %v: %s", action, err, said)
	}
}

// ask sends a request, and returns the answer.
func (d *DynamoDB) ask(action, body string) (said string, err error) {
	request, err := http.NewRequest(http.MethodPost, d.TLS.scheme()+d.Addr(), bytes.NewReader([]byte(body)))
	if err != nil {
		return "", err
	}
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810."+action)
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	// Nobody checks the signature.
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=any, SignedHeaders=host, Signature=any")
	request.Header.Set("X-Amz-Date", "any")
	answer, err := d.TLS.caller(patience).Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return string(text), err
}

// Addr returns the host and port.
func (d *DynamoDB) Addr() string { return address(d.port) }

// URL returns the table as dynamodb://locks, with the endpoint and the file of the keys.
func (d *DynamoDB) URL() string { return d.Through(d.Addr()) }

// Through returns the URL of the table for clients that reach the emulator at another address.
func (d *DynamoDB) Through(addr string) string {
	u := url.URL{Scheme: "dynamodb", Host: DynamoTable}
	u.RawQuery = url.Values{"endpoint": {d.TLS.scheme() + addr}, "region": {"us-east-1"}, "credentials": {d.credentials}}.Encode()
	return u.String()
}

// Requests returns the number of requests that the emulator has received.
func (d *DynamoDB) Requests() int {
	d.tb.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, accessLog))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.tb.Fatalf("%v", err)
	}
	return bytes.Count(text, []byte("\n"))
}

// Version returns the name and the version of the emulator.
func (d *DynamoDB) Version() string { return "dynalite " + dynaliteVersion }
