"""The short ways of the requests that are sent most: from the frame to the response bytes."""
