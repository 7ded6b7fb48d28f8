package answers

type Row struct{ Said, Text string }

func Find(rows []Row, status int, code, said string) Row { return Row{} }
