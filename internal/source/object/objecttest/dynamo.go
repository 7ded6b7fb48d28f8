package objecttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Table is a DynamoDB table with the features that backends use: items with a LockID.
type Table struct {
	nettest.Log[string] // the operations

	Name string

	// Allows and Before may be replaced while the table is in use.
	Allows atomic.Pointer[func(operation string) bool]                          // nil allows all operations
	Before atomic.Pointer[func(http.ResponseWriter, *http.Request) (done bool)] // returns true if it has sent a response; may be nil

	mu    sync.Mutex
	items map[string]map[string]any // attributes by LockID
}

// Serve starts the table's server without TLS and returns its URL. The server stops at the end of the test.
func (d *Table) Serve(t testing.TB) string {
	t.Helper()
	return nettest.Serve(t, d)
}

// Text returns the string value of an item's attribute, or an empty string if there is none.
func (d *Table) Text(id, attribute string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	value, _ := d.items[id][attribute].(map[string]any)
	text, _ := value["S"].(string)
	return text
}

// Delete removes an item.
func (d *Table) Delete(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.items, id)
}

// Put creates an item with one attribute.
func (d *Table) Put(id, attribute, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.put(id, map[string]any{"LockID": map[string]any{"S": id}, attribute: map[string]any{"S": text}})
}

func (d *Table) put(id string, item map[string]any) {
	if d.items == nil {
		d.items = map[string]map[string]any{}
	}
	d.items[id] = item
}

func (d *Table) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var in struct {
		TableName, ConditionExpression string
		Item, Key                      map[string]any
		ExpressionAttributeValues      map[string]any
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || !strings.Contains(r.Header.Get("Authorization"), "/dynamodb/aws4_request") {
		d.refuse(w, "SerializationException")
		return
	}
	d.Note(operation)
	if before := d.Before.Load(); before != nil && (*before)(w, r) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key := in.Key
	if key == nil {
		key = in.Item
	}
	value, _ := key["LockID"].(map[string]any)
	id, _ := value["S"].(string)
	there, found := d.items[id]
	allows := d.Allows.Load()
	switch {
	case in.TableName != d.Name:
		d.refuse(w, "ResourceNotFoundException")
	case allows != nil && !(*allows)(operation):
		d.refuse(w, "AccessDeniedException")
	case in.ConditionExpression == "attribute_not_exists(LockID)" && found,
		in.ConditionExpression == "Info = :info" && fmt.Sprint(there["Info"]) != fmt.Sprint(in.ExpressionAttributeValues[":info"]):
		d.refuse(w, "ConditionalCheckFailedException")
	case operation == "PutItem":
		d.put(id, in.Item)
		_, _ = w.Write([]byte("{}"))
	case operation == "DeleteItem":
		delete(d.items, id)
		_, _ = w.Write([]byte("{}"))
	case operation == "GetItem" && found:
		_ = json.NewEncoder(w).Encode(map[string]any{"Item": there})
	case operation == "GetItem":
		_, _ = w.Write([]byte("{}"))
	default:
		d.refuse(w, "UnknownOperationException")
	}
}

func (d *Table) refuse(w http.ResponseWriter, kind string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws.dynamodb.v20120810#" + kind, "message": Canary})
}
