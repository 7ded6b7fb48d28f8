package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// asked are programs that read the script of the first argument, and print for each
// command line that follows what becomes of its last word. Terraform is set up as it
// sets itself up.
func asked() map[string]string {
	return map[string]string{
		"bash": `source "$1"; shift
for line; do COMP_WORDS=($line); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _statecrypt; echo "${COMPREPLY[@]}"; done`,
		"fish": `source $argv[1]
complete -f -c terraform -a "(COMP_LINE=(commandline -cp) command terraform)"
for line in $argv[2..]; printf '%s\n' (complete -C $line | string replace -r '\t.*' ''); end`,
		"zsh":                 typed(`autoload -Uz compinit; compinit -u -D; source $1`),
		"zsh from its folder": typed(`fpath=(${1:h} $fpath); autoload -Uz compinit; compinit -u -D`),
	}
}

// typed is a zsh that types into another one, which was prepared.
func typed(prepare string) string {
	return `zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT=; set -- ${(q)1}; ` + prepare + `"
zpty -w shell "autoload -Uz bashcompinit; bashcompinit; complete -C terraform terraform; echo rea''dy"
while zpty -r shell line; do [[ $line == ready* ]] && break; done
shift
for typed; do
  zpty -w -n shell $typed$'\t\x01'"echo complet''ed "$'\n'
  while zpty -r shell line; do [[ $line == completed* ]] && break; done
  words=(${(z)${line%$'\r\n'}})
  print -r -- $words[-1]
done`
}

// The scripts complete in their shells. Those that are not here are not asked.
func TestCompletion(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	for name, text := range map[string]string{"tofu": "", "terraform": `case "$COMP_LINE" in *"terraform pl") echo plan ;; esac`} {
		if err := os.Chmod(write(t, filepath.Join(bin, name), "#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, program := range asked() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shell, _, _ := strings.Cut(name, " ")
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(err)
			}
			script := write(t, "_statecrypt", must(t, "", "", "completion", shell))
			args := []string{"-c", program, "-", script}
			if shell == "fish" {
				args = []string{"--no-config", "-c", program, script}
			}
			var want strings.Builder
			for _, row := range [][2]string{
				{"rot", "rotate"},
				{"decrypt -c", "-config"},
				{"rotate -ba", "-backend"},
				{"wrap -enc", "-encrypt-existing"},
				{"completion fi", "fish"},
				{"wrap -- tof", "tofu"},
				{"wrap -config x -- terrafo", "terraform"},
				{"wrap -- terraform pl", "plan"},
				{"wrap -- terraform -con", ""},
				{"wrap -- other -con", ""},
			} {
				args = append(args, "statecrypt "+row[0])
				if shell == "zsh" && row[1] == "" {
					row[1] = "-con" // as it was
				}
				want.WriteString(row[1] + "\n")
			}
			cmd := exec.CommandContext(t.Context(), path, args...)
			cmd.Dir = t.TempDir()
			cmd.Env = append(world.World{}.Environ().Pairs(), "HOME="+cmd.Dir, "TERM=dumb", "PATH="+bin+":"+os.Getenv("PATH"))
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != want.String() {
				t.Errorf("got %v, %s\nwant %s", err, out, &want)
			}
		})
	}
}
