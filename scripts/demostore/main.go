// Command demostore is the backend of the demo: it keeps a state in a file, for
// Terraform's http backend, without passwords and without locks.
//
//	demostore STATE URL
//
// It writes its own address to the file URL.
package main

import (
	"io"
	"net"
	"net/http"
	"os"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the program
	if err != nil {
		panic(err)
	}
	keep := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.ServeFile(w, r, os.Args[1])
			return
		}
		state := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, state); err != nil || os.WriteFile(os.Args[1], state, 0o600) != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	if err := os.WriteFile(os.Args[2], []byte("http://"+listener.Addr().String()), 0o600); err != nil {
		panic(err)
	}
	panic(http.Serve(listener, keep)) //nolint:gosec // it serves one demo
}
