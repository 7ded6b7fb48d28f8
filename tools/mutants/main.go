// Command mutants sums up the results of gremlins for make mutants:
//
//	mutants -root DIR -accepted FILE REPORT…
//
// Each report is the output of gremlins -o for one package. The name of the report is the folder of the package, with _
// instead of /. FILE has one line for each change that no test needs to notice: the file, the kind of change, the
// changed line of code, and the reason, separated by tabs. The same line of code may occur in several places. The
// command fails if a change that is not in the list went unnoticed, if an entry in the list matches no unnoticed
// change, or if less than 95 % of all changes were noticed.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const required = 0.95 // the required share of noticed changes

// report is the gremlins report about one package.
type report struct {
	Files []struct {
		Name      string `json:"file_name"`
		Mutations []struct {
			Line   int    `json:"line"`
			Column int    `json:"column"`
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"mutations"`
	} `json:"files"`
}

// mutant is one kind of change to one line of code.
type mutant struct{ file, kind, code string }

// survivor is a mutant that no test noticed.
type survivor struct {
	mutant
	place string
}

func main() {
	root := flag.String("root", ".", "where the code is")
	accepted := flag.String("accepted", "", "the list of changes that no test needs to notice")
	flag.Parse()
	if err := run(os.Stdout, *root, *accepted, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, root, list string, paths []string) error {
	reasons, err := readReasons(list)
	if err != nil {
		return err
	}
	var survivors []survivor
	all, looked := 0, map[string]bool{}
	for _, report := range paths {
		name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(report), ".json"), "_", "/")
		n, slow, found, err := read(root, name, report)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-24s %4d of %4d noticed, %5.1f %%; %d of them by tests that did not end\n",
			name, n-len(found), n, percent(n-len(found), n), slow)
		survivors = append(survivors, found...)
		all += n
		looked[name] = true
	}
	maps.DeleteFunc(reasons, func(m mutant, _ string) bool { return !looked[path.Dir(m.file)] })
	return judge(out, all, survivors, reasons)
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

// judge compares the survivors with the accepted changes.
func judge(out io.Writer, all int, survivors []survivor, reasons map[mutant]string) error {
	used := map[mutant]bool{}
	unexplained := 0
	for _, s := range survivors {
		if _, ok := reasons[s.mutant]; ok {
			used[s.mutant] = true
			continue
		}
		unexplained++
		fmt.Fprintf(out, "unnoticed: %s\t%s\t%s\t(%s)\n", s.file, s.kind, s.code, s.place)
	}
	var errs []error
	for m := range reasons {
		if !used[m] {
			errs = append(errs, fmt.Errorf("the list of accepted changes has one that is noticed, or no longer there: %s, %s: %s", m.file, m.kind, m.code))
		}
	}
	noticed := all - len(survivors)
	fmt.Fprintf(out, "%-24s %4d of %4d noticed, %5.1f %%; %d of the rest have no reason\n", "all", noticed, all, percent(noticed, all), unexplained)
	if unexplained > 0 {
		errs = append(errs, errors.New("write tests that notice the changes above, or say in the list why none has to"))
	}
	if float64(noticed) < required*float64(all) {
		errs = append(errs, fmt.Errorf("at least %.0f %% must be noticed", 100*required))
	}
	return errors.Join(errs...)
}

// read returns the number of changes in a report, the number of changes that make tests hang, which count as noticed,
// and the changes that no test noticed. Changes that do not compile are ignored.
func read(root, folder, path string) (all, slow int, survivors []survivor, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, nil, err
	}
	var r report
	if err := json.Unmarshal(content, &r); err != nil {
		return 0, 0, nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, file := range r.Files {
		name := folder + "/" + file.Name
		code, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return 0, 0, nil, err
		}
		lines := strings.Split(string(code), "\n")
		for _, m := range file.Mutations {
			switch m.Status {
			case "NOT VIABLE", "SKIPPED":
				continue
			case "TIMED OUT":
				slow++
			case "LIVED", "NOT COVERED":
				survivors = append(survivors, survivor{
					mutant{name, m.Type, strings.TrimSpace(lines[m.Line-1])}, fmt.Sprintf("line %d, column %d", m.Line, m.Column),
				})
			}
			all++
		}
	}
	return all, slow, survivors, nil
}

func readReasons(path string) (map[mutant]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	reasons := map[mutant]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		cells := strings.Split(lines.Text(), "\t")
		if len(cells) != 4 || slices.Contains(cells, "") {
			return nil, fmt.Errorf("%s: a line needs a file, a kind of change, a line of code and a reason: %s", path, lines.Text())
		}
		reasons[mutant{cells[0], cells[1], cells[2]}] = cells[3]
	}
	return reasons, nil
}
