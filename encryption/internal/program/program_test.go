//go:build unix

package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const header = `printf '{"magic":"M","version":1,"later":"field"}\n'; `

func sh(script string) Command {
	return Command{Argv: []string{"sh", "-c", script, "sh", "canary-argument"}, Magic: "M", World: world.Here(), killDelay: time.Second / 2}
}

type reply struct {
	A json.RawMessage `json:"a"`
}

func TestRun(t *testing.T) {
	t.Setenv("TF_ENCRYPTION", "canary-config")
	t.Setenv("STATE_PASSPHRASE", "canary-passphrase")
	t.Setenv("THEIR_OWN_TOKEN", "needed")
	says := testkit.OpenGolden(t, "../../testdata/mistakes.txt", "programs", "canary", "Y2FuYXJ5", "needed")
	for name, c := range map[string]struct {
		script string
		want   string // what a is
		err    error
	}{
		"echo":                 {script: header + `printf '{"a":%s}' "$(cat)"`, want: `{"x":1}`},
		"does not read":        {script: header + `printf '{"a":1}'`, want: `1`},
		"answer in pieces":     {script: `printf '{"magic":"M",'; sleep 0.05; printf '"version":1}\n{"a"'; sleep 0.05; printf ':2}'`, want: `2`},
		"only the first value": {script: header + `printf '{"a":1} {"a":2} and more'`, want: `1`},
		"environment": {script: header + `printf '{"a":"%s%s%s"}' "$TF_ENCRYPTION" "$STATE_PASSPHRASE" "$THEIR_OWN_TOKEN"`,
			want: `"needed"`},
		"an agent stays": {script: header + `sleep 600 & printf '{"a":1}'`, want: `1`},

		"status":          {script: header + `printf '{"a":1}'; echo why >&2; exit 3`, err: ErrFailed},
		"signal":          {script: header + `kill -9 $$`, err: ErrFailed},
		"no header":       {script: `:`, err: ErrProtocol},
		"no line end":     {script: `printf '{"magic":"M","version":1}'`, err: ErrProtocol},
		"other magic":     {script: `printf '{"magic":"X","version":1}\n'; sleep 600`, err: ErrProtocol},
		"other version":   {script: `printf '{"magic":"M","version":2}\n'; sleep 600`, err: ErrProtocol},
		"not a header":    {script: `yes '' | tr -d '\n' & yes | tr -d '\n'`, err: ErrProtocol},
		"text in between": {script: header + `echo canary-key; printf '{"a":1}'`, err: ErrProtocol},
		"unknown field":   {script: header + `printf '{"a":1,"canary-field":1}'`, err: ErrProtocol},
		"no answer":       {script: header, err: ErrProtocol},
		"endless":         {script: header + `printf '{"a":"'; yes | tr -d '\n'`, err: errTooLong},
		"escaped":         {script: header + `printf 'a\033[2Jb\nc\xff' >&2; exit 1`, err: ErrFailed},
		"a usage text": {script: `printf 'Error: no TPM\nUsage:\n  plugin [flags]\n\nFlags:\n  -h, --help\n\nno device at /dev/tpmrm0\n' >&2
			exit 1`, err: ErrFailed},
		"only a usage text": {script: `printf 'Usage:\n  plugin [flags]\n' >&2; exit 1`, err: ErrFailed},
		"secrets": {script: header + `echo "canary-secret, $(printf canary-secret | base64) and $(printf canary-secret | od -An -tx1 | tr -d ' \n')" >&2
			exit 1`, err: ErrFailed},
		"its own key": {script: `set -x; KEY=Y2FuYXJ5LWtleS1vZi1tYW55LWJ5dGVz; ` + header + `printf '{"a":"%s"}' $KEY; exit 1`, err: ErrFailed},
		"its own key, and an error of the protocol": {script: header + `echo "canary-key-of-many-bytes,"; printf '{"a":1}'
			echo canary-key-of-many-bytes >&2`, err: ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			var out reply
			begin := time.Now()
			err := sh(c.script).Run(t.Context(), []byte(`{"x":1}`), 1000, &out, []byte("canary-secret"))
			if !errors.Is(err, c.err) || string(out.A) != c.want && c.err == nil {
				t.Errorf("got %s, %v; want %s, %v", out.A, err, c.want, c.err)
			}
			switch {
			case name == "its own key": // which each shell shows in its own way
				if text := err.Error(); !strings.Contains(text, "KEY=(secret)") || strings.Contains(text, "Y2FuYXJ5") {
					t.Errorf("the error says %q", err)
				}
			case err != nil:
				says.Error(t, name, err)
			}
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestMuchIsCut(t *testing.T) {
	t.Parallel()
	err := sh(`yes é | head -n 300000 >&2; echo the reason >&2; exit 1`).Run(t.Context(), nil, 1000, &reply{})
	if err == nil || len(err.Error()) > 2500 || !strings.HasSuffix(err.Error(), `\nthe reason`) {
		t.Errorf("got %.3000v", err)
	}
}

func TestLargeInput(t *testing.T) {
	t.Parallel()
	input := bytes.Repeat([]byte("x"), 8<<20)
	var out reply
	err := sh(header+`printf '{"a":%d}' "$(wc -c)"`).Run(t.Context(), input, 1000, &out)
	if err != nil || string(out.A) != "8388608" {
		t.Errorf("got %s, %v", out.A, err)
	}
}

// A script that the system does not run says what is probably wrong in it.
func TestScripts(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "../../testdata/mistakes.txt", "scripts")
	for _, text := range []string{
		"echo hello\n",
		"#!/bin/sh\r\necho hello\r\n",
	} {
		path := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // it is to be run
			t.Fatal(err)
		}
		err := Command{Argv: []string{path}, Magic: "M"}.Run(t.Context(), nil, 1000, &reply{})
		says.Error(t, fmt.Sprintf("%q", text), err)
	}
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/nonexistent/kp", "statecrypt-no-such-program", plain} {
		err := Command{Argv: []string{path, "canary"}, Magic: "M"}.Run(t.Context(), nil, 1000, &reply{})
		if !errors.Is(err, ErrFailed) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A program is stopped with all its children, when the context ends and when
// its time is over. The children write their number first.
func TestStopped(t *testing.T) {
	t.Parallel()
	for name, stubborn := range map[string]string{"obedient": "", "stubborn": "trap '' TERM; "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pids := filepath.Join(t.TempDir(), "pids")
			p := sh(stubborn + `sh -c "` + stubborn + `echo \$\$ >'` + pids + `'; while :; do sleep 0.1; done" & wait; wait`)
			started := func() bool { text, _ := os.ReadFile(pids); return bytes.HasSuffix(text, []byte("\n")) }
			for p.Patience = time.Second / 8; !started(); p.Patience *= 2 { // until it is enough for two shells to start
				err := p.Run(t.Context(), nil, 1000, &reply{})
				if !errors.Is(err, errTimeout) || errors.Is(err, ErrFailed) {
					t.Fatalf("time is over: %v", err)
				}
			}
			checkGone(t, pids)

			if err := os.Remove(pids); err != nil {
				t.Fatal(err)
			}
			p.Patience = 10 * time.Minute
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				for !started() && ctx.Err() == nil {
					time.Sleep(10 * time.Millisecond)
				}
				cancel()
			}()
			begin := time.Now()
			if err := p.Run(ctx, nil, 1000, &reply{}); !errors.Is(err, context.Canceled) {
				t.Errorf("the context ends: %v", err)
			}
			if took := time.Since(begin); took > 2*time.Minute {
				t.Errorf("it took %v to stop", took)
			}
			checkGone(t, pids)
		})
	}
}

func checkGone(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if err := json.Unmarshal(bytes.TrimSpace(text), &pid); err != nil {
		t.Fatal(err)
	}
	for try := 0; running(pid); try++ {
		if try == 6000 {
			t.Fatalf("process %d is still there", pid)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// running does not count what is dead and only waits to be collected.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", jsonText(pid), "stat"))
	return err != nil || !bytes.Contains(stat, []byte(") Z "))
}

func jsonText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
