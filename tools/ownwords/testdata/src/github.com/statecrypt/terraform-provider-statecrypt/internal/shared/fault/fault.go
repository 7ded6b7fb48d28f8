package fault

func Text(err error) string { return err.Error() }
