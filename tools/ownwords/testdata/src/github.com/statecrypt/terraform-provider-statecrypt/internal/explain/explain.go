package explain

func Text(err error) string { return err.Error() }
