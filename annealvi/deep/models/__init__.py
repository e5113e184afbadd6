"""The deep models themselves, one file each."""
