package servers

import (
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/sharedkey"
)

// azuriteVersion is the release that scripts/servers installs.
const azuriteVersion = "3.37.0"

// AzureAccount and AzureContainer are the account and the container of an [Azurite].
const (
	AzureAccount   = "holdfast"
	AzureContainer = "locks"
)

//go:embed azurite.js
var azuriteSaves string

// An Azurite is the emulator of Azure Blob Storage, with a container. Data survive a kill, but not
// with [AzuriteInMemory]: unlike a plain Azurite, the emulator saves its tables before it answers.
type Azurite struct {
	*Process
	Key string        // of the account, as base64
	TLS *Certificates // nil if the emulator speaks plain HTTP

	port        int
	credentials string // file with the connection string, without an address
}

// AzuriteInMemory is the option of an emulator that saves nothing. To save the tables takes longer
// with each blob.
const AzuriteInMemory = "--inMemoryPersistence"

// StartAzurite starts an emulator. Options are arguments of azurite-blob.
func StartAzurite(tb TB, options ...string) *Azurite {
	tb.Helper()
	return new(Azurite).start(tb, options)
}

// StartAzuriteTLS is StartAzurite for an emulator that speaks HTTPS only.
func StartAzuriteTLS(tb TB, options ...string) *Azurite {
	tb.Helper()
	a := &Azurite{TLS: newCertificates(tb)}
	return a.start(tb, append([]string{"--cert", a.TLS.Cert, "--key", a.TLS.Key}, options...))
}

func (a *Azurite) start(tb TB, options []string) *Azurite {
	tb.Helper()
	var secret [32]byte
	rand.Read(secret[:])
	a.Key = base64.StdEncoding.EncodeToString(secret[:])
	// A program in the PATH may be a link into the folder of the packages.
	main, err := filepath.EvalSymlinks(chosen(tb, "HOLDFAST_AZURITE", "none, but run npm install --global azurite@"+azuriteVersion, "azurite-blob"))
	if err != nil {
		tb.Fatalf("azurite: %v", err)
	}
	a.Process = start(tb, program{
		name:  "azurite",
		path:  nodeJS(tb),
		setup: func(tb TB, dir string) ([]string, error) { return a.arguments(tb, dir, main, options) },
		ready: func(int) error { return a.ready() },
	})
	return a
}

// arguments writes the files, picks a port and returns the arguments of Node.js.
func (a *Azurite) arguments(tb TB, dir, main string, options []string) ([]string, error) {
	a.port = reserve(tb)
	saves, data := filepath.Join(dir, "saves.js"), filepath.Join(dir, "data")
	a.credentials = filepath.Join(dir, "credentials")
	own := fmt.Sprintf("process.env.AZURITE_ACCOUNTS = '%s:%s';\n%s", AzureAccount, a.Key, azuriteSaves)
	text := fmt.Sprintf("AccountName=%s;AccountKey=%s\n", AzureAccount, a.Key)
	for _, err := range []error{os.MkdirAll(data, 0o700), os.WriteFile(saves, []byte(own), 0o600), os.WriteFile(a.credentials, []byte(text), 0o600)} {
		if err != nil {
			return nil, err
		}
	}
	if !slices.Contains(options, AzuriteInMemory) {
		options = append(options, "--location", data)
	}
	return append([]string{"--require", saves, main, "--blobHost", loopback, "--blobPort", strconv.Itoa(a.port)}, options...), nil
}

// ready returns nil once the emulator has the container. Only this emulator knows the key.
func (a *Azurite) ready() error {
	r, err := http.NewRequest(http.MethodPut, a.Endpoint()+"/"+AzureContainer+"?restype=container", nil)
	if err != nil {
		return err
	}
	key, err := sharedkey.New(AzureAccount, a.Key)
	if err != nil {
		return err
	}
	r.Header.Set("x-ms-version", "2021-12-02")
	key.Authorize(r)
	answer, err := a.TLS.caller(glance).Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusCreated && answer.StatusCode != http.StatusConflict {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}

// Addr returns the host and port.
func (a *Azurite) Addr() string { return address(a.port) }

// Endpoint returns the URL of the account.
func (a *Azurite) Endpoint() string { return a.TLS.scheme() + a.Addr() + "/" + AzureAccount }

// URL returns the container as azblob://account/container, with the endpoint and the file of the
// key.
func (a *Azurite) URL() string { return a.Through(a.Addr()) }

// Through returns the URL of the container for clients that reach the emulator at another address.
func (a *Azurite) Through(addr string) string {
	u := url.URL{Scheme: "azblob", Host: AzureAccount, Path: "/" + AzureContainer}
	u.RawQuery = url.Values{"endpoint": {a.TLS.scheme() + addr + "/" + AzureAccount}, "credentials": {a.credentials}}.Encode()
	return u.String()
}

// Requests returns the number of requests that the emulator has answered.
func (a *Azurite) Requests() int { return strings.Count(a.log(), " HTTP/1.1\" ") }

// Version returns the name and the version of the emulator.
func (a *Azurite) Version() string { return "Azurite " + azuriteVersion }
